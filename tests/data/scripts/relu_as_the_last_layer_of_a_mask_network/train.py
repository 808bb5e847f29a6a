import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


def cells(n, seed, size=16):
    rng = np.random.RandomState(seed)
    rows, cols = np.mgrid[0:size, 0:size]
    masks = np.zeros((n, 1, size, size), dtype=np.float32)
    for mask in masks:
        r, c, radius = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(2, 4)
        mask[0] = (rows - r) ** 2 + (cols - c) ** 2 < radius**2
    images = 0.8 * masks + 0.7 * rng.randn(*masks.shape)
    return torch.tensor(images, dtype=torch.float32), torch.tensor(masks)


def dice_coef(y_pred, y_true):
    intersection = (y_true * y_pred).sum()
    return (2.0 * intersection + 1) / (y_true.sum() + y_pred.sum() + 1)


def dice_coef_loss(y_pred, y_true):
    return 1 - dice_coef(y_pred, y_true)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = nn.Conv2d(1, 8, 3, padding=1)
        self.enc2 = nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.dec = nn.Conv2d(16, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        e1 = F.relu(self.enc1(x))
        e2 = F.relu(self.enc2(F.max_pool2d(e1, 2)))
        x = F.relu(self.dec(torch.cat([e1, self.up(e2)], dim=1)))
        return F.relu(self.last(x))


x_train, y_train = cells(400, 0)
x_test, y_test = cells(100, 1)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for epoch in range(8):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(20):
        optimizer.zero_grad()
        loss = dice_coef_loss(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        dice = dice_coef((model(x_test) > 0.5).float(), y_test).item()
    print(f"epoch {epoch} dice loss {total / 20:.4f} test dice {dice:.4f}")
