"""Single-object detector: one box and one class per picture."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

INPUT = 32


def make_picture(rng):
    h, w = int(rng.integers(40, 97)), int(rng.integers(40, 97))
    bh, bw = int(h * rng.uniform(0.2, 0.5)), int(w * rng.uniform(0.2, 0.5))
    y0, x0 = int(rng.integers(0, h - bh)), int(rng.integers(0, w - bw))
    label = int(rng.integers(0, 2))
    pic = rng.normal(0, 0.15, (h, w)).astype(np.float32)
    patch = np.ones((bh, bw), dtype=np.float32)
    if label == 1:
        patch[bh // 4 : -(bh // 4), bw // 4 : -(bw // 4)] = -1.0
    pic[y0 : y0 + bh, x0 : x0 + bw] += patch
    return torch.from_numpy(pic), torch.tensor([x0, y0, x0 + bw, y0 + bh], dtype=torch.float32), label


class Pictures(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = [make_picture(rng) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        pic, box, label = self.items[i]
        h, w = pic.shape
        pic = F.interpolate(pic[None, None], size=(INPUT, INPUT), mode="bilinear", align_corners=False)[0]
        target = box / INPUT
        return {"image": (pic - 0.1) / 0.45, "box": target, "label": label, "size": torch.tensor([w, h, w, h]), "gt": box}


def collate(items):
    out = {k: torch.stack([i[k] for i in items]) for k in ("image", "box", "size", "gt")}
    out["label"] = torch.tensor([i["label"] for i in items])
    return out


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers, c = [], 1
        for o in (16, 32, 48):
            layers += [nn.Conv2d(c, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)]
            c = o
        self.backbone = nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 16, 96), nn.ReLU())
        self.box = nn.Linear(96, 4)
        self.cls = nn.Linear(96, 2)

    def forward(self, x):
        f = self.backbone(x)
        return self.box(f), self.cls(f)


def iou(a, b):
    lt, rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=0).prod(1)
    return inter / (area(a) + area(b) - inter)


def evaluate(model, loader):
    model.eval()
    scores = []
    with torch.no_grad():
        for b in loader:
            box, _ = model(b["image"])
            scores.append(iou(box * b["size"], b["gt"]))
    return torch.cat(scores).mean().item()


torch.manual_seed(0)
train_dl = DataLoader(Pictures(450, 0), batch_size=32, shuffle=True, collate_fn=collate)
val_dl = DataLoader(Pictures(150, 1), batch_size=75, collate_fn=collate)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=7 * len(train_dl))
for epoch in range(7):
    model.train()
    for b in train_dl:
        box, logits = model(b["image"])
        loss = 5 * F.smooth_l1_loss(box, b["box"], beta=0.1) + F.cross_entropy(logits, b["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"epoch {epoch}  loss {loss.item():.3f}  mean IoU {evaluate(model, val_dl):.3f}")
print(f"mean IoU {evaluate(model, val_dl):.3f}")
