import numpy as np
import torch
import torch.nn as nn

np.random.seed(1)
torch.manual_seed(1)

# daily sensor signal, trend removed; predict the next value from the last 20
T = 1500
t = np.arange(T)
signal = np.sin(t / 6.0) + 0.5 * np.sin(t / 2.3 + 1) + 0.1 * np.random.randn(T)
signal = (signal - signal[:1100].mean()) / signal[:1100].std()


def windows(values, size=20):
    x = np.stack([values[i:i + size] for i in range(len(values) - size)])
    y = values[size:]
    return torch.tensor(x, dtype=torch.float32).unsqueeze(-1), torch.tensor(y, dtype=torch.float32).unsqueeze(-1)


x_train, y_train = windows(signal[:1100])
x_val, y_val = windows(signal[1100:])


class RNN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1, :])


model = RNN()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
batch_size = 50
epochs = 20

for epoch in range(epochs):
    model.train()
    perm = torch.randperm(len(x_train))
    total = 0.0
    for i in range(0, len(perm), batch_size):
        idx = perm[i:i + batch_size]
        prediction = model(x_train[idx])
        loss = criterion(prediction, y_train[idx])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val).item()
    print(f"epoch {epoch + 1:3d}  train {total / len(perm):.4f}  val {val_loss:.4f}")

print(f"final validation mse {val_loss:.4f}")
