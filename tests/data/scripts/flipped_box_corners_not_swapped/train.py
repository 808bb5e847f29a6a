import argparse
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


def render(rng, size):
    w, h = rng.integers(6, 14, 2)
    x = rng.integers(0, size - w)
    y = rng.integers(0, size - h)
    img = rng.normal(0, 0.25, (1, size, size))
    img[0, y:y + h, x:x + w] += 1.0
    box = np.array([x, y, x + w, y + h]) / size
    return img.astype(np.float32), box.astype(np.float32)


class BoxDataset(Dataset):
    """Single object localisation, boxes are (x1, y1, x2, y2) in units of the image size."""

    def __init__(self, n, size=28, seed=0, augment=False):
        rng = np.random.default_rng(seed)
        self.samples = [render(rng, size) for _ in range(n)]
        self.augment = augment

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        img, box = self.samples[i]
        img, box = torch.from_numpy(img), torch.from_numpy(box)
        if self.augment and torch.rand(1).item() < 0.5:
            img = img.flip(-1)
            x1, y1, x2, y2 = box
            box = torch.stack([1 - x1, y1, 1 - x2, y2])
        return img, box


class Localizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(24 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 4), nn.Sigmoid())

    def forward(self, x):
        return self.head(self.features(x))


def iou(a, b):
    lt = torch.max(a[:, :2], b[:, :2])
    rb = torch.min(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(1)
    area = lambda z: (z[:, 2:] - z[:, :2]).clamp(min=0).prod(1)
    return inter / (area(a) + area(b) - inter).clamp(min=1e-6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(0)
    train = DataLoader(BoxDataset(400, seed=1, augment=True), args.batch_size, shuffle=True)
    val = DataLoader(BoxDataset(160, seed=2), 80)
    model = Localizer()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.SmoothL1Loss(beta=0.1)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for img, box in train:
            optimizer.zero_grad()
            loss = criterion(model(img), box)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            score = torch.cat([iou(model(img), box) for img, box in val]).mean().item()
        print(f"[{epoch}] loss {np.mean(losses):.4f} val IoU {score:.4f}")
    print("final val IoU", round(score, 4))


if __name__ == "__main__":
    main()
