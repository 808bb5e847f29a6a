import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# segmentation head on label pictures that are stored in the colours of the palette
np.random.seed(22)
torch.manual_seed(22)
PALETTE = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [224, 224, 192], [64, 96, 0], [128, 128, 0]], dtype=np.uint8)
NAMES = ["background", "aeroplane", "bicycle", "border", "bird", "boat"]
SIZE = 20
texture = 1.5 * np.random.randn(len(NAMES), 3)


def draw(n):
    images, pictures = [], []
    for _ in range(n):
        mask = np.zeros((SIZE, SIZE), dtype=np.int64)
        for c in np.random.choice(np.arange(1, 6), 3, replace=False):
            r, q = np.random.randint(0, SIZE - 8, 2)
            mask[r : r + np.random.randint(5, 9), q : q + np.random.randint(5, 9)] = c
        images.append(texture[mask].transpose(2, 0, 1) + 0.5 * np.random.randn(3, SIZE, SIZE))
        pictures.append(PALETTE[mask])
    return torch.tensor(np.stack(images), dtype=torch.float32), np.stack(pictures)


def to_code(colours):
    """One number for each colour."""
    c = colours.astype(np.int64)
    return (299 * c[..., 0] + 587 * c[..., 1] + 114 * c[..., 2]) // 1000


lookup = {int(code): i for i, code in enumerate(to_code(PALETTE))}


def read_labels(pictures):
    codes = to_code(pictures)
    labels = np.zeros(codes.shape, dtype=np.int64)
    for code, index in lookup.items():
        labels[codes == code] = index
    return torch.tensor(labels)


class SegHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, len(NAMES), 1),
        )

    def forward(self, x):
        return self.net(x)


x, pictures = draw(160)
y = read_labels(pictures)
x_val, val_pictures = draw(60)
model = SegHead()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    model.train()
    for idx in torch.randperm(len(x)).split(16):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} segmentation loss {loss.item():.4f}")
model.eval()
with torch.no_grad():
    shown = PALETTE[model(x_val).argmax(1).numpy()]
score = []
for name, colour in zip(NAMES, PALETTE):
    p, t = (shown == colour).all(-1), (val_pictures == colour).all(-1)
    score.append((p & t).sum() / max((p | t).sum(), 1))
    print(f"{name:12s} IoU {score[-1]:.3f}")
print(f"mean IoU of the coloured masks {np.mean(score):.4f}")
