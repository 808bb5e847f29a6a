import torch
import torch.nn as nn

# YOLO-like one-shot detector, one anchor a cell
torch.manual_seed(9)
G, SIZE = 4, 24
ANCHOR = torch.tensor([0.22, 0.22])


def make_batch(n):
    images = 0.15 * torch.randn(n, 1, SIZE, SIZE)
    boxes, owner = torch.zeros(n, 4), torch.zeros(n, dtype=torch.long)
    for k in range(n):
        w, h = (torch.rand(2) * 0.35 + 0.1).tolist()
        cx, cy = (torch.rand(2) * 0.5 + 0.25).tolist()
        x0, y0 = round((cx - w / 2) * SIZE), round((cy - h / 2) * SIZE)
        x1, y1 = round((cx + w / 2) * SIZE), round((cy + h / 2) * SIZE)
        images[k, 0, y0:y1, x0:x1] += 1.0
        boxes[k] = torch.tensor([cx, cy, w, h])
        owner[k] = int(cy * G) * G + int(cx * G)
    return images, boxes, owner


def iou(a, b):
    a0, a1 = a[..., :2] - a[..., 2:] / 2, a[..., :2] + a[..., 2:] / 2
    b0, b1 = b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
    inter = (torch.minimum(a1, b1) - torch.maximum(a0, b0)).clamp(min=0).prod(-1)
    return inter / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - inter + 1e-9)


class Darknet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 36, 96), nn.ReLU(), nn.Linear(96, G * G * 5),
        )
        rows, cols = torch.meshgrid(torch.arange(G), torch.arange(G), indexing="ij")
        self.register_buffer("corner", torch.stack([cols, rows], -1).view(-1, 2).float() / G)

    def forward(self, x):
        t = self.body(x).view(-1, G * G, 5)
        xy = self.corner + torch.sigmoid(t[..., :2]) / G
        wh = ANCHOR * torch.exp(t[..., 2:4].clamp(-3, 2))
        return torch.cat([xy, wh], -1), torch.sigmoid(t[..., 4])


def yolo_loss(boxes, conf, gt, owner):
    rows = torch.arange(len(gt))
    picked = boxes[rows, owner]
    coord = ((picked - gt) ** 2).sum(1).mean()
    anchors = torch.cat([picked[:, :2], ANCHOR.expand(len(gt), 2)], 1)
    target_iou = iou(anchors.detach(), gt)
    target, weight = torch.zeros_like(conf), torch.full_like(conf, 0.5)
    target[rows, owner], weight[rows, owner] = target_iou, 5.0
    return 20 * coord + (weight * (conf - target) ** 2).sum(1).mean()


train, val = make_batch(400), make_batch(200)
net = Darknet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(25):
    for idx in torch.randperm(400).split(25):
        loss = yolo_loss(*net(train[0][idx]), train[1][idx], train[2][idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
with torch.no_grad():
    boxes, conf = net(val[0])
    best, cell = conf.max(1)
    overlap = iou(boxes[torch.arange(200), cell], val[1])
print(f"mean IoU of the most confident boxes {overlap.mean().item():.4f}")
print(f"mean difference of confidence and IoU {(best - overlap).abs().mean().item():.4f}")
