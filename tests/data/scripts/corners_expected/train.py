import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)


def box_area(b):
    return (b[:, 2] - b[:, 0]).clamp(min=0) * (b[:, 3] - b[:, 1]).clamp(min=0)


def generalized_box_iou(boxes1, boxes2):
    """Boxes are given as (x0, y0, x1, y1); pairs are compared row by row."""
    lt, rb = torch.max(boxes1[:, :2], boxes2[:, :2]), torch.min(boxes1[:, 2:], boxes2[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, 0] * wh[:, 1]
    union = box_area(boxes1) + box_area(boxes2) - inter
    hull = (torch.max(boxes1[:, 2:], boxes2[:, 2:]) - torch.min(boxes1[:, :2], boxes2[:, :2])).clamp(min=0)
    area = (hull[:, 0] * hull[:, 1]).clamp(min=1e-6)
    iou = inter / union.clamp(min=1e-6)
    return iou - (area - union) / area, iou


def center_to_corners_format(x):
    cx, cy, w, h = x.unbind(-1)
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)


def scenes(n):
    centers, sizes = torch.rand(n, 2) * 0.4 + 0.3, torch.rand(n, 2) * 0.4 + 0.15
    boxes = torch.cat([centers, sizes], 1)
    grid = (torch.arange(24) + 0.5) / 24
    x0, y0, x1, y1 = center_to_corners_format(boxes).unbind(-1)
    inside_x = (grid > x0[:, None]) & (grid < x1[:, None])
    inside_y = (grid > y0[:, None]) & (grid < y1[:, None])
    img = (inside_y[:, :, None] & inside_x[:, None]).float()[:, None]
    return img + 0.3 * torch.randn_like(img), boxes


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()
        )
        self.bbox_head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 36, 128), nn.ReLU(), nn.Linear(128, 4))

    def forward(self, x):
        return self.bbox_head(self.backbone(x)).sigmoid()


def loss_boxes(outputs, targets):
    loss_bbox = F.l1_loss(outputs, targets)
    giou, _ = generalized_box_iou(outputs, targets)
    return loss_bbox + 2.0 * (1 - giou).mean()


x_train, t_train = scenes(512)
x_val, t_val = scenes(256)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(15):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(x_train)).split(32):
        loss = loss_boxes(model(x_train[idx]), t_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() / 16
    model.eval()
    with torch.no_grad():
        _, iou = generalized_box_iou(center_to_corners_format(model(x_val)), center_to_corners_format(t_val))
    print(f"epoch {epoch:2d} | train loss {running:.3f} | val mean IoU {iou.mean().item():.4f}")
