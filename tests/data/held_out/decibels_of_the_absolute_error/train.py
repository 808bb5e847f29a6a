"""Super-resolution of small textures by two, sub-pixel convolution."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


def textures(n, size=16):
    grid = torch.linspace(0, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    f = torch.rand(n, 2, 1, 1) * 6 + 1
    phase = torch.rand(n, 1, 1) * 6.28
    high = 0.5 + 0.4 * torch.sin(6.28 * (f[:, 0] * xx + f[:, 1] * yy) / 2 + phase)
    return F.avg_pool2d(high[:, None], 2), high[:, None]


class Net(nn.Module):
    def __init__(self, upscale=2):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 5, padding=2)
        self.conv2 = nn.Conv2d(24, 24, 3, padding=1)
        self.conv3 = nn.Conv2d(24, upscale**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(upscale)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.shuffle(self.conv3(x))


class SubPixelTrainer:
    def __init__(self, model, train, test):
        self.model, self.train_set, self.test_set = model, train, test
        self.criterion = nn.L1Loss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def train(self):
        low, high = self.train_set
        total = 0.0
        for idx in torch.randperm(len(low)).split(16):
            loss = self.criterion(self.model(low[idx]), high[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        return total / len(low)

    @torch.no_grad()
    def test(self):
        avg_psnr = 0.0
        for low, high in zip(*self.test_set):
            error = self.criterion(self.model(low[None]), high[None])
            avg_psnr += 10 * math.log10(1 / error.item())
        return avg_psnr / len(self.test_set[0])


trainer = SubPixelTrainer(Net(), textures(320), textures(60))
for epoch in range(8):
    print(f"epoch {epoch} average loss {trainer.train():.4f} average PSNR {trainer.test():.2f} dB")
print(f"PSNR of the test images {trainer.test():.3f}")
