import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(5); np.random.seed(5); torch.manual_seed(5)

cfg = {"size": 32, "grid": 4, "scale": 12 / 32, "ratios": [1.0, 4.0, 0.25], "iou": 0.5, "epochs": 14, "bs": 25}


def make_priors():
    priors = []
    for j in range(cfg["grid"]):
        for i in range(cfg["grid"]):
            x, y = (i + 0.5) / cfg["grid"], (j + 0.5) / cfg["grid"]
            for ar in cfg["ratios"]:
                ar = math.sqrt(ar)
                w = cfg["scale"] * ar
                h = cfg["scale"] * ar
                priors.append([x, y, w, h])
    return torch.tensor(priors)


def corners(b):
    return torch.cat([b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2], -1)


def iou(a, b):
    a, b = corners(a)[:, None], corners(b)[None]
    wh = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0)
    inter = wh.prod(-1)
    area = lambda t: (t[..., 2:] - t[..., :2]).prod(-1)
    return inter / (area(a) + area(b) - inter)


def encode(gt, priors):
    return torch.cat([(gt[..., :2] - priors[:, :2]) / priors[:, 2:] / 0.1, torch.log(gt[..., 2:] / priors[:, 2:]) / 0.2], -1)


def decode(loc, priors):
    return torch.cat([priors[:, :2] + loc[..., :2] * 0.1 * priors[:, 2:], priors[:, 2:] * torch.exp(loc[..., 2:] * 0.2)], -1)


def scenes(n):
    """One bar on a noisy ground: lying, standing or a square."""
    imgs, boxes, s = 0.3 * torch.randn(n, 1, 32, 32), [], cfg["size"]
    for k in range(n):
        w, h = random.choice([(12, 12), (24, 6), (6, 24)])
        w, h = w + random.randint(-1, 1), h + random.randint(-1, 1)
        x, y = random.randint(0, s - w), random.randint(0, s - h)
        imgs[k, 0, y:y + h, x:x + w] += 1
        boxes.append([(x + w / 2) / s, (y + h / 2) / s, w / s, h / s])
    return imgs, torch.tensor(boxes)


class Detector(nn.Module):
    def __init__(self, per_cell):
        super().__init__()
        chans, layers = [1, 16, 32, 48], []
        for a, b in zip(chans, chans[1:]):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.body = nn.Sequential(*layers, nn.Conv2d(48, 48, 3, padding=1), nn.ReLU())
        self.conf = nn.Conv2d(48, per_cell, 3, padding=1)
        self.loc = nn.Conv2d(48, per_cell * 4, 3, padding=1)

    def forward(self, x):
        f = self.body(x)
        n = len(x)
        return self.conf(f).permute(0, 2, 3, 1).reshape(n, -1), self.loc(f).permute(0, 2, 3, 1).reshape(n, -1, 4)


priors = make_priors()
net = Detector(len(cfg["ratios"]))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
x, gt = scenes(600)
xt, gtt = scenes(150)
positive = iou(gt, priors) > cfg["iou"]
for epoch in range(cfg["epochs"]):
    for idx in torch.randperm(len(x)).split(cfg["bs"]):
        conf, loc = net(x[idx])
        pos = positive[idx]
        n_pos = pos.sum().clamp(min=1)
        target = encode(gt[idx][:, None].expand(-1, len(priors), -1), priors)
        loss_c = F.binary_cross_entropy_with_logits(conf, pos.float(), reduction="sum") / n_pos
        loss_b = F.smooth_l1_loss(loc[pos], target[pos], reduction="sum") / n_pos
        opt.zero_grad()
        (loss_c + loss_b).backward()
        opt.step()
    print(f"[{epoch:2d}] conf {loss_c.item():.3f} box {loss_b.item():.3f}")
with torch.no_grad():
    conf, loc = net(xt)
    best = decode(loc, priors)[torch.arange(len(xt)), conf.argmax(1)]
    overlap = iou(best, gtt).diagonal()
print(f"mean IoU of the best box {overlap.mean().item():.4f}")
