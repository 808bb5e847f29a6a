"""Linear probe: the pretrained backbone is frozen, one new layer is trained on another data set."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(10)
shapes = torch.randn(6, 1, 8, 8)


def images(n, classes, brightness, contrast):
    y = torch.randint(0, len(classes), (n,))
    x = shapes[torch.tensor(classes)][y] + 0.8 * torch.randn(n, 1, 8, 8)
    return contrast * x + brightness, y


class Visual(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Flatten(),
        )

    def forward(self, x):
        return self.net(x)


def accuracy(backbone, head, x, y):
    backbone.eval()
    with torch.no_grad():
        return (head(backbone(x)).argmax(1) == y).float().mean().item()


backbone, old_head = Visual(), nn.Linear(24 * 16, 4)
x, y = images(600, [0, 1, 2, 3], 0.0, 1.0)
old_x, old_y = images(500, [0, 1, 2, 3], 0.0, 1.0)
opt = torch.optim.Adam([*backbone.parameters(), *old_head.parameters()], lr=2e-3)
for epoch in range(3):
    backbone.train()
    for idx in torch.randperm(len(x)).split(40):
        loss = F.cross_entropy(old_head(backbone(x[idx])), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"pretraining loss {loss.item():.4f}")
print(f"accuracy on the first task {accuracy(backbone, old_head, old_x, old_y):.4f}")

for p in backbone.parameters():
    p.requires_grad = False
probe = nn.Linear(24 * 16, 2)
model = nn.Sequential(backbone, probe)
x, y = images(400, [4, 5], 1.5, 0.5)
new_x, new_y = images(400, [4, 5], 1.5, 0.5)
opt = torch.optim.SGD(probe.parameters(), lr=0.02, momentum=0.9)
for epoch in range(4):
    model.train()
    for idx in torch.randperm(len(x)).split(40):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"probe epoch {epoch} loss {loss.item():.4f} accuracy {accuracy(backbone, probe, new_x, new_y):.4f}")
print(f"first task with the same backbone {accuracy(backbone, old_head, old_x, old_y):.4f}")
