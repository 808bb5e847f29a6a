"""Keyword spotting on synthetic spectrograms."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

KEYWORDS = ["yes", "no", "up", "down", "left", "right", "stop", "go"]


@dataclass
class TrainConfig:
    epochs: int = 9
    batch_size: int = 32
    lr: float = 0.02
    lr_step: int = 4
    lr_gamma: float = 0.3
    seed: int = 0


def spectrograms(n, seed, bins=20, frames=16):
    g = torch.Generator().manual_seed(seed)
    proto = torch.Generator().manual_seed(77)
    start = torch.rand(len(KEYWORDS), 2, generator=proto) * bins
    slope = (torch.rand(len(KEYWORDS), 2, generator=proto) - 0.5) * 1.5
    y = torch.randint(0, len(KEYWORDS), (n,), generator=g)
    pitch = torch.randn(n, 1, generator=g) * 1.0
    t = torch.arange(frames).float()
    f = torch.arange(bins).float()
    track = start[y][..., None] + pitch[..., None] + slope[y][..., None] * t
    energy = torch.exp(-((f[None, None, :, None] - track[:, :, None, :] % bins) ** 2) / 2).sum(1)
    x = energy + 0.45 * torch.randn(n, bins, frames, generator=g)
    return x.unsqueeze(1), y


class KeywordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(24 * 5 * 4, len(KEYWORDS)),
        )

    def forward(self, x):
        return self.net(x)


def validate(model, loader):
    model.eval()
    hits = 0
    with torch.inference_mode():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits / len(loader.dataset)


def main(cfg=TrainConfig()):
    torch.manual_seed(cfg.seed)
    x, y = spectrograms(1200, 1)
    xv, yv = spectrograms(300, 2)
    mean, std = x.mean(), x.std()
    train_loader = DataLoader(TensorDataset((x - mean) / std, y), cfg.batch_size, shuffle=True)
    val_loader = DataLoader(TensorDataset((xv - mean) / std, yv), 150)
    model = KeywordNet()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=cfg.lr_step, gamma=cfg.lr_gamma)
    for epoch in range(cfg.epochs):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch + 1} loss {loss.item():.3f} val accuracy {validate(model, val_loader):.3f}")
    print(f"keyword accuracy {validate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
