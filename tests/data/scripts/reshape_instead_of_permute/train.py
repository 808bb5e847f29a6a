import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

COLORS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 60, 220)}
SHAPES = ("hbar", "vbar", "square")
CLASSES = [f"{c}_{s}" for c in COLORS for s in SHAPES]


def draw(rng, label, size=20):
    color, shape = CLASSES[label].split("_")
    img = rng.integers(60, 160, (size, size, 1)).repeat(3, axis=2) + rng.integers(-20, 20, (size, size, 3))
    h, w = {"hbar": (3, 12), "vbar": (12, 3), "square": (6, 6)}[shape]
    y, x = rng.integers(0, size - h), rng.integers(0, size - w)
    img[y:y + h, x:x + w] = np.array(COLORS[color]) + rng.integers(-30, 30, (h, w, 3))
    return img.clip(0, 255).astype(np.uint8)


class ShapeDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(CLASSES), n)
        self.images = [draw(rng, l) for l in self.labels]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        h, w, c = img.shape
        x = torch.from_numpy(img).float().div(255).reshape(c, h, w)
        return (x - 0.45) / 0.2, int(self.labels[i])


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1))
        self.fc = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1))


class Trainer:
    def __init__(self, model, train_set, val_set, lr=2e-3, batch_size=32):
        self.model = model
        self.train_loader = DataLoader(train_set, batch_size, shuffle=True)
        self.val_loader = DataLoader(val_set, 100)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            print(f"epoch {epoch} loss {loss.item():.3f} val acc {self.evaluate():.3f}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        return hits / len(self.val_loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(1)
    trainer = Trainer(Net(len(CLASSES)), ShapeDataset(600, 10), ShapeDataset(300, 11))
    trainer.fit(8)
    print(f"val accuracy {trainer.evaluate():.4f}")
