"""Keypoint regression on stick figures: head, left/right hand, left/right foot."""
import numpy as np
import torch
import torch.nn as nn

NAMES = ["head", "left_hand", "right_hand", "left_foot", "right_foot"]
SIZE = 28


def figure(rng):
    cx, cy = rng.uniform(11, 17, 2)
    pts = np.array(
        [
            [cx + rng.uniform(-1, 1), cy - 8],
            [cx - rng.uniform(4, 9), cy + rng.uniform(-6, 3)],
            [cx + rng.uniform(4, 9), cy + rng.uniform(-6, 3)],
            [cx - rng.uniform(1, 5), cy + rng.uniform(6, 10)],
            [cx + rng.uniform(1, 5), cy + rng.uniform(6, 10)],
        ]
    )
    img = np.zeros((SIZE, SIZE), dtype=np.float32)
    for j, (px, py) in enumerate(pts):
        for s in np.linspace(0, 1, 25):
            x, y = cx + s * (px - cx), cy + s * (py - cy)
            img[int(np.clip(y, 0, SIZE - 1)), int(np.clip(x, 0, SIZE - 1))] = 1.0
    img += rng.normal(0, 0.1, img.shape)
    return img, pts / SIZE


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    imgs, pts = zip(*(figure(rng) for _ in range(n)))
    return torch.tensor(np.stack(imgs))[:, None].float(), torch.tensor(np.stack(pts)).float()


def augment(imgs, pts, gen):
    flip = torch.rand(len(imgs), generator=gen) < 0.5
    imgs, pts = imgs.clone(), pts.clone()
    imgs[flip] = imgs[flip].flip(-1)
    mirrored = pts[flip]
    mirrored[..., 0] = (SIZE - 1) / SIZE - mirrored[..., 0]
    pts[flip] = mirrored
    return imgs, pts


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 49, 96), nn.ReLU(), nn.Linear(96, 2 * len(NAMES)))

    def forward(self, x):
        return self.head(self.conv(x)).view(-1, len(NAMES), 2)


def main(epochs=10, batch=40):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    x, p = make_set(450, 1)
    xv, pv = make_set(150, 2)
    mean, std = x.mean(), x.std()
    x, xv = (x - mean) / std, (xv - mean) / std
    net = PoseNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        net.train()
        for idx in torch.randperm(len(x), generator=gen).split(batch):
            xb, pb = augment(x[idx], p[idx], gen)
            loss = nn.functional.smooth_l1_loss(net(xb), pb, beta=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        net.eval()
        with torch.no_grad():
            err = (net(xv) - pv).norm(dim=-1).mean() * SIZE
        print(f"epoch {epoch} loss {loss.item():.4f} mean error {err:.2f} px")
    print(f"mean keypoint error in pixels {err:.3f}")


main()
