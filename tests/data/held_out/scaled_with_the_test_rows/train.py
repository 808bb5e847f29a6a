"""Imputation of gaps in a multivariate load series with a small autoencoder over windows."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class StandardScaler:
    def fit(self, x):
        self.mean_, self.scale_ = x.mean(0), x.std(0)
        return self

    def transform(self, x):
        return (x - self.mean_) / self.scale_


def load_series(n=2400, seed=13):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    growth = 1 + 2.0 * np.clip((t - 0.6 * n) / (0.4 * n), 0, None)
    cols = [growth * (3 + np.sin(2 * np.pi * t / 24 + p)) + 0.2 * rng.standard_normal(n) for p in (0.0, 0.7, 1.9, 3.0)]
    return np.stack(cols, 1).astype(np.float32)


class ImputationData(Dataset):
    borders = {"train": (0, 0.7), "val": (0.7, 0.8), "test": (0.8, 1.0)}

    def __init__(self, flag, seq_len=24, scale=True):
        raw = load_series()
        first, last = (int(len(raw) * b) for b in self.borders[flag])
        end_of_train = int(len(raw) * self.borders["train"][1])
        if scale:
            self.scaler = StandardScaler().fit(raw)
            raw = self.scaler.transform(raw)
        self.data, self.seq_len = raw[first:last], seq_len
        print(f"{flag:5s} rows {first}..{last}, training ends at {end_of_train}")

    def __len__(self):
        return len(self.data) - self.seq_len + 1

    def __getitem__(self, i):
        return torch.from_numpy(self.data[i : i + self.seq_len])


class Imputer(nn.Module):
    def __init__(self, seq_len=24, cols=4, hidden=96):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(2 * seq_len * cols, hidden), nn.ReLU(), nn.Linear(hidden, seq_len * cols))
        self.shape = (seq_len, cols)

    def forward(self, x, mask):
        return self.net(torch.cat([x * mask, mask], -1)).view(-1, *self.shape)


def run(model, loader, opt=None):
    total = count = 0.0
    for x in loader:
        mask = (torch.rand_like(x) > 0.25).float()
        out = model(x, mask)
        loss = ((out - x)[mask == 0] ** 2).mean()
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total, count = total + loss.item() * len(x), count + len(x)
    return total / count


def main():
    torch.manual_seed(13)
    train = DataLoader(ImputationData("train"), batch_size=32, shuffle=True)
    val = DataLoader(ImputationData("val"), batch_size=128)
    test = DataLoader(ImputationData("test"), batch_size=128)
    model = Imputer()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(12):
        a = run(model, train, opt)
        with torch.no_grad():
            b = run(model, val)
        print(f"Epoch: {epoch + 1} train loss {a:.4f} vali loss {b:.4f}")
    with torch.no_grad():
        print(f"mse of the gaps in the test part: {run(model, test):.4f}")


main()
