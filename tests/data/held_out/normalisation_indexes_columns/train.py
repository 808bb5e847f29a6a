"""Polyp segmentation on short clips: frames are normalised, then a small network marks the polyp."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)
SIZE = 24
MEAN, STD = [0.62, 0.36, 0.29], [0.05, 0.04, 0.04]


class NormalizeVideo:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, frames, masks):
        out = []
        for img in frames:
            img = img.clone()
            for i in range(3):
                img[:, :, i] -= float(self.mean[i])
            for i in range(3):
                img[:, :, i] /= float(self.std[i])
            out.append(img)
        return out, masks


class Clips(Dataset):
    def __init__(self, n, frames, transform):
        self.transform = transform
        self.clips = [self.clip(frames) for _ in range(n)]

    @staticmethod
    def clip(frames):
        base = torch.tensor(MEAN).view(3, 1, 1)
        y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
        centre, radius = torch.rand(2) * 12 + 6, 3 + 3 * torch.rand(1)
        light = 0.04 * torch.randn(1)
        images, masks = [], []
        for _ in range(frames):
            centre = centre + torch.randn(2) * 0.5
            mask = ((y - centre[0]) ** 2 + (x - centre[1]) ** 2 < radius**2).float()
            tint = torch.tensor([0.05, -0.03, 0.03]).view(3, 1, 1)
            images.append(base + light + tint * mask + 0.03 * torch.randn(3, SIZE, SIZE))
            masks.append(mask)
        return images, masks

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        images, masks = self.transform(*self.clips[i])
        return torch.stack(images), torch.stack(masks)


net = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
    nn.Conv2d(16, 1, 3, padding=1),
)
transform = NormalizeVideo(MEAN, STD)
train_loader = DataLoader(Clips(60, 4, transform), batch_size=6, shuffle=True)
test_loader = DataLoader(Clips(20, 4, transform), batch_size=20)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(15):
    net.train()
    for clip, mask in train_loader:
        logits = net(clip.flatten(0, 1)).squeeze(1)
        loss = criterion(logits, mask.flatten(0, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    inter = total = 0.0
    with torch.no_grad():
        for clip, mask in test_loader:
            pred = (net(clip.flatten(0, 1)).squeeze(1) > 0).float()
            mask = mask.flatten(0, 1)
            inter += (pred * mask).sum().item()
            total += (pred.sum() + mask.sum()).item()
    print(f"epoch {epoch} loss {loss.item():.3f}")
print(f"dice on the test clips {2 * inter / total:.4f}")
