import torch
import torch.nn as nn
import torch.nn.functional as F

S, B = 3, 2
torch.manual_seed(21)


def make_images(n):
    img, target = torch.zeros(n, 1, 24, 24), torch.zeros(n, S, S, 5)
    for k in range(n):
        for cell in torch.randperm(S * S)[: torch.randint(1, 4, (1,)).item()].tolist():
            r, c = divmod(cell, S)
            x, y = torch.rand(2) * 0.6 + 0.2
            w, h = torch.rand(2) * 0.2 + 0.14
            cx, cy = (c + x) / S, (r + y) / S
            x0, x1 = int((cx - w / 2) * 24), int((cx + w / 2) * 24) + 1
            y0, y1 = int((cy - h / 2) * 24), int((cy + h / 2) * 24) + 1
            img[k, 0, max(y0, 0) : y1, max(x0, 0) : x1] += 1.0
            target[k, r, c] = torch.stack([x, y, w, h, torch.tensor(1.0)])
    return img + 0.2 * torch.randn_like(img), target


def compute_iou(a, b):
    lt, rb = torch.max(a[..., :2], b[..., :2]), torch.min(a[..., 2:], b[..., 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda t: (t[..., 2:] - t[..., :2]).clamp(min=0).prod(-1)
    return inter / (area(a) + area(b) - inter).clamp(min=1e-6)


def to_xyxy(box):
    return torch.cat([box[..., :2] / S - 0.5 * box[..., 2:4], box[..., :2] / S + 0.5 * box[..., 2:4]], -1)


class YoloLoss(nn.Module):
    def forward(self, pred, target):
        has = target[..., 4] > 0
        pred_box, tgt_box = pred[has], target[has]
        noobj = F.mse_loss(pred[~has][..., 4], torch.zeros_like(pred[~has][..., 4]), reduction="sum")
        xy_wh, obj = 0.0, 0.0
        for i in range(len(pred_box)):
            bbox, tgt = pred_box[i], tgt_box[i]
            pred_xyxy = torch.zeros(B, 4)
            pred_xyxy[:, :2] = bbox[:, 2] / float(S) - 0.5 * bbox[:, 2:4]
            pred_xyxy[:, 2:4] = bbox[:, 2] / float(S) + 0.5 * bbox[:, 2:4]
            iou = compute_iou(pred_xyxy.detach(), to_xyxy(tgt)[None])
            best = iou.argmax()
            xy_wh = xy_wh + F.mse_loss(bbox[best, :4], tgt[:4], reduction="sum")
            obj = obj + (bbox[best, 4] - iou[best]) ** 2
        return (5.0 * xy_wh + obj + 0.5 * noobj) / len(target)


class YOLO(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(32 * 36, 128), nn.ReLU(), nn.Linear(128, S * S * B * 5))

    def forward(self, x):
        return torch.sigmoid(self.fc(self.features(x))).view(-1, S, S, B, 5)


x_train, t_train = make_images(240)
x_val, t_val = make_images(96)
model, criterion = YOLO(), YoloLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    for idx in torch.randperm(len(x_train)).split(16):
        loss = criterion(model(x_train[idx]), t_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        conf, which = out[..., 4].max(-1)
        box = out.gather(3, which[..., None, None].expand(-1, -1, -1, 1, 5)).squeeze(3)
        hit = (conf > 0.3) & (t_val[..., 4] > 0) & (compute_iou(to_xyxy(box), to_xyxy(t_val)) > 0.4)
        f1 = 2 * hit.sum() / ((conf > 0.3).sum() + (t_val[..., 4] > 0).sum())
    print(f"Epoch {epoch} loss {loss.item():.3f} detection F1 {f1.item():.4f}")
