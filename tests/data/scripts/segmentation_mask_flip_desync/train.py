import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

SIZE = 24


def make_scene(rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    cy, cx = rng.uniform(5, SIZE - 5, 2)
    ry, rx = rng.uniform(3, 6, 2)
    mask = (((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1).astype(np.float32)
    image = 0.9 * mask + rng.normal(0, 0.35, (SIZE, SIZE))
    return image.astype(np.float32)[None], mask[None]


class RandomFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, t):
        if random.random() < self.p:
            t = t.flip(-1)
        if random.random() < self.p:
            t = t.flip(-2)
        return t


class CellDataset(Dataset):
    def __init__(self, n, seed, transform=None):
        rng = np.random.default_rng(seed)
        self.items = [make_scene(rng) for _ in range(n)]
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, mask = self.items[i]
        image, mask = torch.from_numpy(image), torch.from_numpy(mask)
        if self.transform is not None:
            image = self.transform(image)
            mask = self.transform(mask)
        return image, mask


class SmallUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(3 * c, c, 3, padding=1), nn.ReLU())
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([a, b], 1)))


@torch.no_grad()
def mean_iou(model, loader):
    model.eval()
    scores = []
    for image, mask in loader:
        pred = model(image) > 0
        truth = mask > 0.5
        inter = (pred & truth).sum((1, 2, 3)).float()
        union = (pred | truth).sum((1, 2, 3)).float()
        scores.append(inter / union.clamp(min=1))
    return torch.cat(scores).mean().item()


random.seed(0)
torch.manual_seed(0)
train_loader = DataLoader(CellDataset(320, 1, RandomFlip()), batch_size=32, shuffle=True)
val_loader = DataLoader(CellDataset(100, 2), batch_size=50)
model = SmallUNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for image, mask in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(image), mask)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(image)
    print(f"epoch {epoch} loss {total / 320:.4f} val IoU {mean_iou(model, val_loader):.4f}")
print(f"final val IoU {mean_iou(model, val_loader):.4f}")
