import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(7)
rng = np.random.default_rng(7)

# hourly load: daily cycle, a second harmonic and an AR(2) part
n = 1800
hours = np.arange(n)
noise = np.zeros(n)
for i in range(2, n):
    noise[i] = 1.2 * noise[i - 1] - 0.5 * noise[i - 2] + rng.normal(0, 0.15)
load = 50 + 10 * np.sin(2 * np.pi * hours / 12) + 4 * np.sin(2 * np.pi * hours / 5) + 5 * noise

split = 1400
mean, std = load[:split].mean(), load[:split].std()
series = torch.tensor((load - mean) / std, dtype=torch.float32)


class WindowDataset(Dataset):
    def __init__(self, data, window=24):
        self.data = data
        self.window = window

    def __len__(self):
        return len(self.data) - self.window

    def __getitem__(self, i):
        x = self.data[i:i + self.window]
        y = self.data[i + self.window - 1]
        return x.unsqueeze(-1), y


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[:, -1]).squeeze(-1)


train_loader = DataLoader(WindowDataset(series[:split]), batch_size=64, shuffle=True)
val_loader = DataLoader(WindowDataset(series[split:]), batch_size=128)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()

for epoch in range(15):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = sum(criterion(model(x), y).item() * len(y) for x, y in val_loader) / len(val_loader.dataset)
    print(f"epoch {epoch:2d} val mse {val:.5f}")

# walk forward over the held-out hours, as the dashboard does
model.eval()
errors = []
with torch.no_grad():
    for now in range(split + 24, n):
        history = series[now - 24:now].view(1, 24, 1)
        errors.append((model(history).item() - series[now].item()) ** 2)
print(f"walk-forward mse {np.mean(errors):.4f}")
