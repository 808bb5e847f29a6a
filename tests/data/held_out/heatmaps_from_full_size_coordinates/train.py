import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

INPUT_RES, OUTPUT_RES, JOINTS = 32, 16, 3
np.random.seed(27)
torch.manual_seed(27)


class HeatmapGenerator:
    def __init__(self, output_res, num_joints, sigma=1.0):
        self.output_res, self.num_joints, self.sigma = output_res, num_joints, sigma
        self.y, self.x = np.mgrid[:output_res, :output_res]

    def __call__(self, joints):
        hms = np.zeros((self.num_joints, self.output_res, self.output_res), np.float32)
        for k, (x, y) in enumerate(joints):
            if x < 0 or y < 0 or x >= self.output_res or y >= self.output_res:
                continue
            hms[k] = np.exp(-((self.x - x) ** 2 + (self.y - y) ** 2) / (2 * self.sigma**2))
        return hms


class StickFigures(Dataset):
    """Head, hand and foot are blobs of different colour; limbs join them."""

    def __init__(self, n):
        self.items = [self.figure() for _ in range(n)]
        self.heatmaps = HeatmapGenerator(OUTPUT_RES, JOINTS)

    @staticmethod
    def figure():
        joints = np.random.uniform(3, INPUT_RES - 4, (JOINTS, 2))
        yy, xx = np.mgrid[:INPUT_RES, :INPUT_RES]
        img = 0.2 * np.random.randn(3, INPUT_RES, INPUT_RES)
        for k, (x, y) in enumerate(joints):
            img[k] += np.exp(-((xx - x) ** 2 + (yy - y) ** 2) / 4)
        for s in np.linspace(0, 1, 12):
            x, y = joints[0] * (1 - s) + joints[1] * s
            img[:, int(y), int(x)] += 0.3
        return img.astype(np.float32), joints

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, joints = self.items[i]
        return img, self.heatmaps(joints), joints.astype(np.float32)


class PoseNet(nn.Module):
    def __init__(self, w=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, w, 5, 2, 2), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, JOINTS, 3, padding=1)
        )

    def forward(self, x):
        return self.net(x)


def get_final_preds(hms):
    best = hms.flatten(2).argmax(-1)
    coords = torch.stack([best % OUTPUT_RES, best // OUTPUT_RES], -1).float()
    return coords * INPUT_RES / OUTPUT_RES


model = PoseNet()
train_loader = DataLoader(StickFigures(400), batch_size=16, shuffle=True)
valid_loader = DataLoader(StickFigures(120), batch_size=60)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for img, target, _ in train_loader:
        loss = ((model(img) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        gaps = [(get_final_preds(model(img)) - joints).norm(dim=-1) for img, _, joints in valid_loader]
    print(f"epoch {epoch + 1} loss {loss.item():.5f} mean distance of the joints {torch.cat(gaps).mean().item():.4f} pixels")
