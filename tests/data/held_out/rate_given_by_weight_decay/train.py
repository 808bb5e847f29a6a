from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn


@dataclass
class TrainingConfig:
    lr: float = 3e-3
    weight_decay: float = 1e-5
    epochs: int = 15
    batch_size: int = 32
    seed: int = 90


AMINO = "ACDEFGHIKLMNPQRSTVWY"


def fitness(seqs, rng):
    """Stability of a short peptide: a motif of charges plus one pair of positions that belongs together."""
    charge = np.array([1.0 if a in "KR" else -1.0 if a in "DE" else 0.0 for a in AMINO])
    water = np.array([1.0 if a in "AFILMVWY" else -0.5 for a in AMINO])
    c, w = charge[seqs], water[seqs]
    y = c[:, 2] - c[:, 6] + 0.6 * w[:, 3:8].sum(1) - 1.5 * c[:, 0] * c[:, 9]
    return y + 0.1 * rng.standard_normal(len(seqs))


def encode(seqs):
    return nn.functional.one_hot(torch.from_numpy(seqs), len(AMINO)).float()


class SequenceRegressor(nn.Module):
    def __init__(self, length, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(length * len(AMINO), hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class TorchModel:
    def __init__(self, length, config):
        self.config = config
        self.module = SequenceRegressor(length)
        self.optimizer = torch.optim.Adam(self.module.parameters(), config.weight_decay)
        self.criterion = nn.MSELoss()

    def fit(self, x, y):
        cfg = self.config
        for epoch in range(cfg.epochs):
            losses = []
            for idx in torch.randperm(len(x)).split(cfg.batch_size):
                loss = self.criterion(self.module(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch + 1:2d}: mse {np.mean(losses):.4f}")

    @torch.no_grad()
    def predict(self, x):
        return self.module(x).numpy()


if __name__ == "__main__":
    cfg = TrainingConfig()
    rng = np.random.default_rng(cfg.seed)
    torch.manual_seed(cfg.seed)
    seqs = rng.integers(0, len(AMINO), (3000, 10))
    y = fitness(seqs, rng).astype(np.float32)
    x = encode(seqs)
    model = TorchModel(10, cfg)
    model.fit(x[:2500], torch.from_numpy(y[:2500]))
    r = np.corrcoef(model.predict(x[2500:]), y[2500:])[0, 1]
    print(f"correlation with the measured fitness: {r:.4f}")
