import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(33)
ANCHORS = torch.tensor([[0.16, 0.16], [0.20, 0.52], [0.52, 0.20], [0.46, 0.46]])
SIZE = 24


def picture():
    w, h = (ANCHORS[torch.randint(0, 4, (1,))][0] * (0.8 + 0.4 * torch.rand(2))).tolist()
    cx, cy = (0.35 + 0.3 * torch.rand(2)).tolist()
    img = 0.3 * torch.randn(1, SIZE, SIZE)
    r, c = slice(round((cy - h / 2) * SIZE), round((cy + h / 2) * SIZE)), slice(
        round((cx - w / 2) * SIZE), round((cx + w / 2) * SIZE)
    )
    img[0, r, c] += 1
    return img, torch.tensor([cx, cy, w, h])


def dataset(n):
    images, boxes = zip(*[picture() for _ in range(n)])
    return torch.stack(images), torch.stack(boxes)


def center_to_corner(box):
    return torch.cat([box[..., :2] - box[..., 2:] / 2, box[..., :2] + box[..., 2:] / 2], -1)


def box_iou(a, b):
    """Overlap of two sets of boxes given by their corners."""
    inter = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    area = [(t[..., 2:] - t[..., :2]).clamp(min=0).prod(-1) for t in (a, b)]
    return inter / (area[0] + area[1] - inter).clamp(min=1e-9)


def match(gt):
    """The anchor that fits the shape of each true box best, both moved to the origin."""
    shift_gt_boxes = torch.cat([torch.zeros_like(gt[:, :2]), gt[:, 2:]], 1)
    shift_anchor_boxes = center_to_corner(torch.cat([torch.zeros(4, 2), ANCHORS], 1))
    return box_iou(shift_anchor_boxes[None], shift_gt_boxes[:, None]).argmax(1)


class YoloHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.out = nn.Sequential(nn.Linear(24 * 36, 64), nn.ReLU(), nn.Linear(64, 4 * 5))

    def forward(self, x):
        t = self.out(self.features(x)).view(-1, 4, 5)
        wh = ANCHORS * torch.exp(0.4 * torch.tanh(t[..., 2:4]))
        return torch.cat([torch.sigmoid(t[..., :2]), wh], -1), t[..., 4]


x, gt = dataset(500)
x_val, gt_val = dataset(250)
best = match(gt)
print("boxes of each anchor:", torch.bincount(best, minlength=4).tolist())
model = YoloHead()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    for idx in torch.randperm(len(x)).split(25):
        boxes, score = model(x[idx])
        own = boxes[torch.arange(len(idx)), best[idx]]
        loss = 10 * F.l1_loss(own, gt[idx]) + F.cross_entropy(score, best[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
with torch.no_grad():
    boxes, score = model(x_val)
    chosen = boxes[torch.arange(len(x_val)), score.argmax(1)]
overlap = box_iou(center_to_corner(chosen), center_to_corner(gt_val))
print(f"mean IoU {overlap.mean().item():.4f}")
print(f"share of boxes with IoU above 0.7: {(overlap > 0.7).float().mean().item():.4f}")
