import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)
FRAMES, K = 10, 4


def videos(n):
    """A bright dot moves left, right, up or down over a noisy screen."""
    y = torch.randint(0, K, (n,))
    step = torch.tensor([[0, -1], [0, 1], [-1, 0], [1, 0]])[y]
    pos = torch.randint(0, 8, (n, 2))
    clip = 0.1 * torch.randn(n, FRAMES, 1, 8, 8)
    for t in range(FRAMES):
        p = (pos + t * step) % 8
        clip[torch.arange(n), t, 0, p[:, 0], p[:, 1]] += 2.0
    return TensorDataset(clip, y)


class EncoderCNN(nn.Module):
    def __init__(self, embed=32):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, embed))

    def forward(self, x_3d):
        return torch.stack([self.conv(x_3d[:, t]) for t in range(x_3d.size(1))], dim=1)


class DecoderRNN(nn.Module):
    def __init__(self, embed=32, h_RNN=64):
        super().__init__()
        self.LSTM = nn.LSTM(input_size=embed, hidden_size=h_RNN, num_layers=1)
        self.fc1, self.fc2 = nn.Linear(h_RNN, 32), nn.Linear(32, K)

    def forward(self, x_RNN):
        RNN_out, (h_n, h_c) = self.LSTM(x_RNN, None)
        x = F.relu(self.fc1(RNN_out[:, -1, :]))
        return self.fc2(x)


encoder, decoder = EncoderCNN(), DecoderRNN()
train_loader = DataLoader(videos(480), batch_size=32, shuffle=True)
valid_loader = DataLoader(videos(160), batch_size=32)
crnn_params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(crnn_params, lr=4e-3)
for epoch in range(15):
    encoder.train(), decoder.train()
    for X, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(decoder(encoder(X)), y)
        loss.backward()
        optimizer.step()
    encoder.eval(), decoder.eval()
    with torch.no_grad():
        hits = sum((decoder(encoder(X)).argmax(1) == y).sum().item() for X, y in valid_loader)
    print(f"Train Epoch: {epoch + 1} Loss: {loss.item():.4f} Test accuracy: {hits / 160:.4f}")
