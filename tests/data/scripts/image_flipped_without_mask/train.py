"""Binary segmentation of blobs with a small U-shaped network."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SIZE = 32


def draw(rng):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    cy, cx = rng.uniform(6, SIZE - 6, 2)
    ry, rx = rng.uniform(3, 8, 2)
    mask = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
    image = mask * 0.7 + rng.normal(0, 0.4, (SIZE, SIZE)) + rng.uniform(-0.2, 0.2)
    return image.astype(np.float32), mask.astype(np.float32)


class Blobs(Dataset):
    def __init__(self, n, seed, augment=False):
        rng = np.random.default_rng(seed)
        pairs = [draw(rng) for _ in range(n)]
        self.images = torch.tensor(np.stack([p[0] for p in pairs]))[:, None]
        self.masks = torch.tensor(np.stack([p[1] for p in pairs]))[:, None]
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def transform(self, image, mask):
        if random.random() < 0.5:
            image = torch.flip(image, dims=[-1])
        return image, mask

    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        if self.augment:
            image, mask = self.transform(image, mask)
        return (image - 0.2) / 0.5, mask


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.down1 = block(1, w)
        self.down2 = block(w, 2 * w)
        self.bottom = block(2 * w, 2 * w)
        self.up1 = block(4 * w, w)
        self.up2 = block(2 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        c = self.up1(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        c = self.up2(torch.cat([F.interpolate(c, scale_factor=2.0), a], 1))
        return self.out(c)


@torch.no_grad()
def mean_iou(model, loader):
    model.eval()
    scores = []
    for image, mask in loader:
        pred = model(image) > 0
        true = mask > 0.5
        inter = (pred & true).sum((1, 2, 3)).float()
        union = (pred | true).sum((1, 2, 3)).float()
        scores.append(inter / union.clamp(min=1))
    return torch.cat(scores).mean().item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    train = DataLoader(Blobs(224, 1, augment=True), batch_size=16, shuffle=True)
    val = DataLoader(Blobs(100, 2), batch_size=50)
    model = TinyUNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        model.train()
        total = 0.0
        for image, mask in train:
            loss = F.binary_cross_entropy_with_logits(model(image), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train):.3f}, val IoU {mean_iou(model, val):.3f}")
    print(f"final val IoU {mean_iou(model, val):.3f}")


if __name__ == "__main__":
    main()
