from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    window: int = 24
    hidden: int = 24
    batch_size: int = 64
    epochs: int = 6
    lr: float = 3e-3
    seed: int = 0


def load_series(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    level = np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(2 * np.pi * t / 168)
    noise = np.zeros(n)
    for i in range(1, n):
        noise[i] = 0.6 * noise[i - 1] + rng.normal() * 0.5
    return torch.tensor(20 + 4 * (level + noise), dtype=torch.float32)


class Windows(Dataset):
    """Past `window` readings and the next reading."""

    def __init__(self, series, window):
        self.series = series
        self.window = window

    def __len__(self):
        return len(self.series) - self.window

    def __getitem__(self, i):
        end = i + self.window
        return self.series[i:end].unsqueeze(-1), self.series[end - 1]


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1]).squeeze(-1)


def run(cfg):
    torch.manual_seed(cfg.seed)
    series = load_series(seed=cfg.seed)
    cut = int(0.8 * len(series))
    mean, std = series[:cut].mean(), series[:cut].std()
    scaled = (series - mean) / std
    train = DataLoader(Windows(scaled[:cut], cfg.window), cfg.batch_size, shuffle=True, drop_last=True)
    valid = DataLoader(Windows(scaled[cut:], cfg.window), 256)

    model = Forecaster(cfg.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.MSELoss()
    for epoch in range(cfg.epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        err = n = 0.0
        with torch.no_grad():
            for x, y in valid:
                err += ((model(x) - y).abs().sum() * std).item()
                n += len(y)
        print(f"epoch {epoch + 1}/{cfg.epochs}  train mse {loss.item():.4f}  val MAE {err / n:.3f}")
    return err / n


if __name__ == "__main__":
    mae = run(Config())
    print(f"one-step-ahead MAE in degrees: {mae:.3f}")
