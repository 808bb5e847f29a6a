import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(2526)
torch.manual_seed(2526)
SIZE = 20


class RandomFlip:
    def __init__(self, prob=0.5):
        self.prob = prob

    def _flip_keypoints(self, keypoints, width):
        meta_info = keypoints[..., 2:]
        keypoints = keypoints[..., :2]
        flipped = keypoints.copy()
        flipped[..., 0] = width - 1 - flipped[..., 0]
        flipped = np.concatenate([keypoints, meta_info], axis=-1)
        return flipped

    def __call__(self, results):
        if rng.random() < self.prob:
            results["img"] = results["img"][:, ::-1].copy()
            results["gt_keypoints"] = self._flip_keypoints(results["gt_keypoints"], results["img"].shape[1])
        return results


def draw():
    """A bright head, a grey body centre and a dark foot; the third number says that the point is visible."""
    cx, cy = rng.uniform(4, SIZE - 5), rng.uniform(6, SIZE - 7)
    pts = np.array([[cx, cy - 4, 1], [cx + rng.uniform(-1, 1), cy, 1], [cx + rng.uniform(-3, 3), cy + 4, 1]])
    pts[:, :2] = pts[:, :2].clip(0, SIZE - 1)
    yy, xx = np.mgrid[:SIZE, :SIZE]
    img = 0.1 * rng.normal(size=(SIZE, SIZE))
    for (x, y, _), b in zip(pts, (2.0, 1.0, -1.5)):
        img += b * np.exp(-((xx - x) ** 2 + (yy - y) ** 2) / 2)
    return {"img": img.astype(np.float32), "gt_keypoints": pts.astype(np.float32)}


class Poses(torch.utils.data.Dataset):
    def __init__(self, n, pipeline=None):
        self.items, self.pipeline = [draw() for _ in range(n)], pipeline

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        results = {k: v.copy() for k, v in self.items[i].items()}
        if self.pipeline:
            results = self.pipeline(results)
        return results["img"][None], results["gt_keypoints"][:, :2] / SIZE


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(24 * 100, 96), nn.ReLU(), nn.Linear(96, 6),
)
train_loader = torch.utils.data.DataLoader(Poses(500, RandomFlip()), batch_size=32, shuffle=True)
val_loader = torch.utils.data.DataLoader(Poses(150), batch_size=150)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(16):
    model.train()
    for img, points in train_loader:
        loss = nn.functional.smooth_l1_loss(model(img).view(-1, 3, 2), points, beta=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    img, points = next(iter(val_loader))
    with torch.no_grad():
        dist = ((model(img).view(-1, 3, 2) - points) * SIZE).norm(dim=-1)
    print(f"epoch {epoch} loss {loss.item():.4f} mean distance in pixels {dist.mean().item():.4f}")
