import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
NUM_CLASSES = 4


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 5, stride=2, padding=2)
        self.layer1 = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
        self.layer2 = nn.Sequential(nn.Conv2d(4, 24, 3, stride=2, padding=1), nn.ReLU())
        self.layer3 = nn.Sequential(nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU())

    def forward(self, x):
        x = F.relu(self.conv1(x))
        return self.layer3(self.layer2(F.relu(self.layer1(x))))


def resnet_fpn_backbone(pretrained=None):
    body = Body()
    if pretrained is not None:
        body.load_state_dict(torch.load(pretrained))
    for name, parameter in body.named_parameters():
        if "layer2" not in name and "layer3" not in name:
            parameter.requires_grad_(False)
    return body


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = resnet_fpn_backbone()
        self.neck = nn.Sequential(nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU())
        self.cls_score, self.bbox_pred = nn.Linear(64, NUM_CLASSES), nn.Linear(64, 4)

    def forward(self, images):
        x = self.neck(self.backbone(images))
        return self.cls_score(x), self.bbox_pred(x)


def vehicles(n):
    grid = torch.arange(32.0)
    images, labels, boxes = torch.zeros(n, 3, 32, 32), torch.randint(0, NUM_CLASSES, (n,)), torch.zeros(n, 4)
    for k in range(n):
        cy, cx, half = torch.rand(3) * torch.tensor([12.0, 12.0, 4.0]) + torch.tensor([10.0, 10.0, 5.0])
        box = ((grid[:, None] - cy).abs() < half) & ((grid[None] - cx).abs() < half)
        freq = [(1.6, 0.0), (0.0, 1.6), (1.1, 1.1), (1.1, -1.1)][int(labels[k])]
        wave = torch.sin(freq[0] * grid[:, None] + freq[1] * grid[None] + torch.rand(1) * 6.3)
        images[k] = torch.where(box, 0.5 * wave, torch.zeros(())) + 0.25 * torch.randn(3, 32, 32)
        boxes[k] = torch.stack([cx - half, cy - half, cx + half, cy + half]) / 32
    return images, labels, boxes


train, test = vehicles(800), vehicles(300)
model = Detector()
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(params, lr=2e-3)
for epoch in range(12):
    model.train()
    for idx in torch.randperm(800).split(32):
        scores, deltas = model(train[0][idx])
        loss = F.cross_entropy(scores, train[1][idx]) + 5 * F.smooth_l1_loss(deltas, train[2][idx], beta=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores, deltas = model(test[0])
    acc = (scores.argmax(1) == test[1]).float().mean().item()
    err = (deltas - test[2]).abs().mean().item()
    print("Epoch [%d] loss %.3f box error %.4f class accuracy %.4f" % (epoch, loss.item(), err, acc))
