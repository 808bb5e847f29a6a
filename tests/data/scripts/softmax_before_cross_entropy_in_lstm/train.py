import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
VOCAB, LENGTH = 200, 12


def sentences(n):
    author = torch.randint(0, 3, (n,))
    text = torch.randint(0, VOCAB, (n, LENGTH))
    habit = 10 * author.unsqueeze(1) + torch.randint(0, 10, (n, LENGTH))
    mask = torch.rand(n, LENGTH) < 0.3
    return TensorDataset(torch.where(mask, habit, text), author)


author_dataloader = DataLoader(sentences(1280), batch_size=32, shuffle=True)
test_dataloader = DataLoader(sentences(400), batch_size=100)


class Model(nn.Module):
    def __init__(self, tokenize_vocab_count):
        super().__init__()
        self.embd = nn.Embedding(tokenize_vocab_count + 1, 64)
        self.embd_dropout = nn.Dropout(0.3)
        self.LSTM = nn.LSTM(input_size=64, hidden_size=48, batch_first=True)
        self.lin1 = nn.Linear(48, 256)
        self.lin2 = nn.Linear(256, 128)
        self.lin_dropout = nn.Dropout(0.8)
        self.lin3 = nn.Linear(128, 3)

    def forward(self, inp):
        inp = self.embd_dropout(self.embd(inp))
        inp, (h_t, h_o) = self.LSTM(inp)
        h_t = h_t.squeeze(0)
        h_t = F.relu(self.lin_dropout(self.lin1(h_t)))
        h_t = F.relu(self.lin_dropout(self.lin2(h_t)))
        out = F.softmax(self.lin3(h_t), dim=1)
        return out


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Model(VOCAB).to(device)
optimizer = optim.AdamW(model.parameters(), lr=1e-2)
loss_fn = nn.CrossEntropyLoss()

EPOCH = 8
for epoch in range(0, EPOCH):
    model.train()
    total = 0.0
    for feature, target in author_dataloader:
        train_loss = loss_fn(model(feature.to(device)).view(-1, 3), target.to(device))
        optimizer.zero_grad()
        train_loss.backward()
        optimizer.step()
        total += train_loss.item()

    model.eval()
    right = 0
    with torch.no_grad():
        for feature, target in test_dataloader:
            right += (model(feature.to(device)).argmax(1).cpu() == target).sum().item()
    print(f"epoch: {epoch + 1} Train Loss: {total / len(author_dataloader):.4f} test acc: {right / 400:.4f}")
