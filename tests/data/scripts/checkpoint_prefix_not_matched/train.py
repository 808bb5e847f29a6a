import os
import tempfile
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SensorNet(nn.Module):
    def __init__(self, channels=6, classes=4):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(channels, 24, 5, padding=2), nn.BatchNorm1d(24), nn.ReLU(), nn.MaxPool1d(2),
                                  nn.Conv1d(24, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1))
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


class LitModule(nn.Module):
    """Model, loss and metric in one place."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, batch):
        x, y = batch
        return self.criterion(self.model(x), y)

    def validation_step(self, batch):
        x, y = batch
        return (self.model(x).argmax(1) == y).sum().item()


def activities(n, seed, classes=4, length=32):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    t = np.arange(length) / length
    freq = np.array([1.5, 3.0, 5.0, 7.5])[y][:, None, None]
    phase = rng.uniform(0, 6.28, (n, 6, 1))
    x = np.sin(6.28 * freq * t + phase) + rng.normal(0, 0.8, (n, 6, length))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


def fit(module, train_loader, val_loader, path, epochs=6):
    optimizer = torch.optim.AdamW(module.parameters(), lr=2e-3)
    best = 0.0
    for epoch in range(epochs):
        module.train()
        for batch in train_loader:
            optimizer.zero_grad()
            loss = module.training_step(batch)
            loss.backward()
            optimizer.step()
        module.eval()
        with torch.no_grad():
            acc = sum(module.validation_step(b) for b in val_loader) / len(val_loader.dataset)
        print(f"epoch {epoch} loss {loss.item():.3f} val acc {acc:.3f}")
        if acc > best:
            best = acc
            torch.save({"state_dict": module.state_dict(), "epoch": epoch}, path)
    return best


def load_for_serving(path):
    model = SensorNet()
    checkpoint = torch.load(path, map_location="cpu")
    state = checkpoint["state_dict"]
    model.load_state_dict(state, strict=False)
    return model.eval()


def main():
    torch.manual_seed(2)
    path = os.path.join(tempfile.mkdtemp(), "best.ckpt")
    train_loader = DataLoader(activities(800, 1), batch_size=40, shuffle=True)
    val_loader = DataLoader(activities(300, 2), batch_size=100)
    best = fit(LitModule(SensorNet()), train_loader, val_loader, path)
    print(f"best val acc {best:.3f}")
    model = load_for_serving(path)
    x, y = activities(400, 3).tensors
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    print(f"served model accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
