"""Human activity recognition from a wrist sensor (3 axes, 40 samples)."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset

ACTIVITIES = ("rest", "walk", "run", "stairs", "cycle")


class WristData(Dataset):
    def __init__(self, n, length=40, seed=0):
        g = torch.Generator().manual_seed(seed)
        freq = torch.tensor([0.0, 1.0, 2.2, 0.6, 1.5])
        amp = torch.tensor([0.0, 1.0, 1.4, 1.2, 0.8])
        self.y = torch.randint(0, len(ACTIVITIES), (n,), generator=g)
        t = torch.linspace(0, 4, length)
        phase = torch.rand(n, 3, generator=g) * 2 * math.pi
        wave = torch.sin(2 * math.pi * freq[self.y][:, None, None] * t[None, :, None] + phase[:, None, :])
        self.x = amp[self.y][:, None, None] * wave + 0.5 * torch.randn(n, length, 3, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class ActivityLSTM(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, num_layers=1)
        self.norm = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, len(ACTIVITIES))

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(self.norm(out[:, -1]))


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=5e-3):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss = nn.CrossEntropyLoss()

    def run_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = self.loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.opt.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        good = sum((self.model(x).argmax(-1) == y).sum().item() for x, y in self.val_loader)
        return good / len(self.val_loader.dataset)

    def fit(self, epochs):
        for e in range(epochs):
            print(f"epoch {e} loss {self.run_epoch():.3f} val acc {self.validate():.3f}")
        return self.validate()


def main():
    torch.manual_seed(0)
    data = WristData(1200)
    train, val = Subset(data, range(960)), Subset(data, range(960, 1200))
    mean = torch.stack([data[i][0] for i in range(960)]).mean((0, 1))
    std = torch.stack([data[i][0] for i in range(960)]).std((0, 1))
    data.x = (data.x - mean) / std
    trainer = Trainer(ActivityLSTM(), DataLoader(train, 48, shuffle=True), DataLoader(val, 120))
    acc = trainer.fit(8)
    print(f"activity accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
