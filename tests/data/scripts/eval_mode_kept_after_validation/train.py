"""Lesion pictures, two classes, few training examples, strong dropout."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Lesions(Dataset):
    def __init__(self, n, seed, label_noise=0.0):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:16, :16] - 7.5
        self.x, self.y = [], []
        for _ in range(n):
            y = rng.integers(2)
            theta = np.arctan2(yy, xx)
            radius = 4.5 + (1.6 if y else 0.5) * np.sin(rng.integers(3, 6) * theta + rng.uniform(0, 6))
            spot = (np.hypot(yy + rng.normal(), xx + rng.normal()) < radius).astype(float)
            self.x.append(spot * rng.uniform(0.7, 1.3) + rng.normal(0, 0.5, spot.shape))
            self.y.append(y if rng.random() > label_noise else 1 - y)
        self.x = torch.tensor(np.stack(self.x), dtype=torch.float32).unsqueeze(1)
        self.y = torch.tensor(self.y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return (self.x[i] - 0.25) / 0.67, self.y[i]


class LesionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(
            nn.Flatten(), nn.Dropout(0.5), nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2)
        )

    def forward(self, x):
        return self.fc(self.conv(x))


def validate(model, loader, criterion):
    model.eval()
    loss = right = 0.0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += criterion(out, y).item() * len(y)
            right += (out.argmax(1) == y).sum().item()
    return loss / len(loader.dataset), right / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(Lesions(320, 0, label_noise=0.1), batch_size=20, shuffle=True)
    val_loader = DataLoader(Lesions(300, 1), batch_size=150)
    model = LesionNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    model.train()
    for epoch in range(10):
        train_loss = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            train_loss += loss.item()
        val_loss, val_acc = validate(model, val_loader, criterion)
        print(f"epoch {epoch} train {train_loss / len(train_loader):.3f} val {val_loss:.3f} acc {val_acc:.3f}")
    print(f"final validation loss {val_loss:.4f}")


if __name__ == "__main__":
    main()
