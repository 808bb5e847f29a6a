import copy
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class ModelEMA:
    def __init__(self, model, decay=0.98):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.module.parameters(), model.parameters()):
            ema_p.mul_(self.decay).add_(p, alpha=1 - self.decay)


def scans(n, seed, classes=5, size=14):
    protos = np.random.default_rng(3).normal(size=(classes, 1, size, size))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    shifts = rng.integers(-1, 2, (n, 2))
    x = np.stack([np.roll(protos[k], tuple(s), (1, 2)) for k, s in zip(y, shifts)])
    x = 1.2 * x + 0.8 + rng.normal(0, 1.2, x.shape)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


def make_model(classes=5):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(24 * 4, classes))


@torch.no_grad()
def evaluate(model, loader):
    was_training = model.training
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train(was_training)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(6)
    train_loader = DataLoader(scans(800, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(scans(400, 2), batch_size=100)
    model = make_model()
    ema = ModelEMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            ema.update(model)
        print(f"epoch {epoch} loss {loss.item():.3f} raw acc {evaluate(model, val_loader):.3f}")
    print(f"EMA val acc {evaluate(ema.module, val_loader):.4f}")


if __name__ == "__main__":
    main()
