import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split


def render_tile(rng):
    """24x24 RGB satellite tile, uint8, height x width x channel."""
    kind = rng.integers(4)
    base = rng.integers(90, 130, 3)
    tile = np.tile(base, (24, 24, 1)).astype(np.float64)
    period = rng.integers(4, 7)
    phase = rng.integers(period)
    axis = kind % 2
    wave = 20 * np.sin(2 * np.pi * (np.arange(24) + phase) / period)
    wave = wave[:, None] if axis == 0 else wave[None, :]
    channel = 0 if kind < 2 else 2
    tile[:, :, channel] += wave
    tile += rng.normal(0, 22, tile.shape)
    return tile.clip(0, 255).astype(np.uint8), int(kind)


class Tiles(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.tiles, self.kinds = zip(*(render_tile(rng) for _ in range(n)))

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        x = torch.from_numpy(self.tiles[i]).float() / 255.0
        x = x.reshape(3, 24, 24)
        return (x - 0.43) / 0.12, self.kinds[i]


class Trainer:
    def __init__(self, model, lr, epochs):
        self.model = model
        self.epochs = epochs
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def accuracy(self, loader):
        self.model.eval()
        hits = n = 0
        with torch.no_grad():
            for x, y in loader:
                hits += int((self.model(x).argmax(1) == y).sum())
                n += len(y)
        return hits / n

    def fit(self, train, val):
        for epoch in range(self.epochs):
            self.model.train()
            losses = [self.step(x, y) for x, y in train]
            print(f"epoch {epoch} loss {np.mean(losses):.3f} val {self.accuracy(val):.3f}")
        return self.accuracy(val)


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, padding=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 24, 3, stride=2, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 4),
    )


if __name__ == "__main__":
    torch.manual_seed(7)
    train_set, val_set = random_split(Tiles(1000, 7), [800, 200])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)
    final = Trainer(build_model(), lr=3e-3, epochs=5).fit(train_loader, val_loader)
    print(f"validation accuracy {final:.3f}")
