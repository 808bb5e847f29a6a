import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(10)
torch.manual_seed(10)


class PairRandomResizedCrop:
    def __init__(self, size, low=18, high=26):
        self.size, self.low, self.high = size, low, high

    def __call__(self, *x):
        full = x[0].shape[-1]
        h = random.randint(self.low, self.high)
        i = random.randint(0, full - h)
        j = random.randint(0, full - h)
        x = list(x)
        for i in range(len(x)):
            crop = x[i][:, i : i + h, j : j + h]
            x[i] = F.interpolate(crop[None], (self.size, self.size), mode="bilinear", align_corners=False)[0]
        return x


class MattingPairs(Dataset):
    def __init__(self, n, transforms=None):
        grid = torch.arange(32.0)
        self.bgr = F.interpolate(torch.rand(n, 3, 6, 6), (32, 32), mode="bilinear", align_corners=False)
        self.pha, self.src = torch.zeros(n, 1, 32, 32), torch.zeros(n, 3, 32, 32)
        for k in range(n):
            cy, cx = random.uniform(8, 24), random.uniform(8, 24)
            d = ((grid[:, None] - cy) ** 2 + (grid[None] - cx) ** 2).sqrt()
            self.pha[k, 0] = torch.sigmoid((random.uniform(4, 9) - d) * 2)
            fgr = torch.rand(3, 1, 1)
            self.src[k] = fgr * self.pha[k] + self.bgr[k] * (1 - self.pha[k])
        self.transforms = transforms

    def __len__(self):
        return len(self.pha)

    def __getitem__(self, k):
        src, bgr, pha = self.src[k], self.bgr[k], self.pha[k]
        if self.transforms is not None:
            src, bgr, pha = self.transforms(src, bgr, pha)
        return src, bgr, pha


model = nn.Sequential(
    nn.Conv2d(6, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1), nn.Sigmoid(),
)
dataloader_train = DataLoader(MattingPairs(128, PairRandomResizedCrop(24)), batch_size=16, shuffle=True)
dataset_valid = MattingPairs(48)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    for true_src, true_bgr, true_pha in dataloader_train:
        pred_pha = model(torch.cat([true_src, true_bgr], 1))
        loss = F.l1_loss(pred_pha, true_pha)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(torch.cat([dataset_valid.src, dataset_valid.bgr], 1))
    print(f"epoch {epoch} train {loss.item():.4f} valid MAD {(pred - dataset_valid.pha).abs().mean().item():.4f}")
