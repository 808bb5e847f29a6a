import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
np.random.seed(0)
CLASSES = 4


class BinaryDiceLoss(nn.Module):
    def __init__(self, smooth=1e-4):
        super().__init__()
        self.smooth = smooth

    def forward(self, output, target):
        output = torch.sigmoid(output)
        output = output.reshape(output.size(0), -1)
        target = target.reshape(target.size(0), -1)
        inter = (output * target).sum(1)
        dice = (2 * inter + self.smooth) / (output.sum(1) + target.sum(1) + self.smooth)
        return 1 - dice.mean()


class DiceLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.dice = BinaryDiceLoss()

    def forward(self, output, target):
        target = F.one_hot(target, CLASSES).permute(0, 3, 1, 2).float()
        output = F.softmax(output, dim=1)
        total_loss = 0
        for i in range(CLASSES):
            total_loss += self.dice(output[:, i], target[:, i])
        return total_loss / CLASSES


def phantom(n, size=32):
    yy, xx = np.mgrid[:size, :size]
    imgs, masks = [], []
    for _ in range(n):
        mask = np.zeros((size, size), np.int64)
        for c in range(1, CLASSES):
            cy, cx = np.random.randint(6, size - 6, 2)
            h, w = np.random.randint(2, 6, 2)
            mask[(np.abs(yy - cy) < h) & (np.abs(xx - cx) < w)] = c
        imgs.append(mask * 0.35 + np.random.randn(size, size) * 0.25)
        masks.append(mask)
    return torch.tensor(np.array(imgs), dtype=torch.float32)[:, None], torch.tensor(np.array(masks))


net = nn.Sequential(
    nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, CLASSES, 1),
)
x_train, y_train = phantom(160)
x_val, y_val = phantom(48)
criterion = DiceLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(10):
    net.train()
    order = torch.randperm(len(x_train))
    for idx in order.split(16):
        optimizer.zero_grad()
        loss = criterion(net(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        pred = net(x_val).argmax(1)
    scores = [
        (2.0 * ((pred == c) & (y_val == c)).sum() / ((pred == c).sum() + (y_val == c).sum()).clamp(min=1)).item()
        for c in range(1, CLASSES)
    ]
    print(f"epoch {epoch + 1} loss {loss.item():.3f} mean foreground dice {np.mean(scores):.4f}")
