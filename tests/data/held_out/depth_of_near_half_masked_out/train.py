import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(77)
MEAN_DEPTH, STD_DEPTH = 20.0, 9.0


def street(n, size=20):
    """Ground plane with boxes on it; colour of a pixel hints at its depth. Some pixels have no measurement (0)."""
    rows = torch.linspace(40, 5, size)[None, :, None].expand(n, size, size)
    depth = rows.clone()
    for k in range(n):
        for _ in range(3):
            y, x = torch.randint(2, size - 6, (2,)).tolist()
            depth[k, y : y + 5, x : x + 4] = depth[k, y + 4, x]
    haze = 1 - torch.exp(-depth / 20)
    image = torch.stack([haze, 0.5 * haze, depth / 40], 1) + 0.08 * torch.randn(n, 3, size, size)
    depth = (depth - MEAN_DEPTH) / STD_DEPTH
    depth[torch.rand(n, size, size) < 0.2] = 0
    return image, depth.unsqueeze(1)


def l1_loss_depth(input, val):
    mask = (val > 0).float()
    count = mask.sum().clamp(min=1)
    return ((input - val).abs() * mask).sum() / count


class MultiTaskNet(nn.Module):
    def __init__(self, w=20):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1), nn.ReLU())
        self.depth, self.edge = nn.Conv2d(w, 1, 1), nn.Conv2d(w, 1, 1)

    def forward(self, x):
        rep = self.encoder(x)
        return self.depth(rep), self.edge(rep)


def edges(depth):
    jump = F.pad((depth[..., 1:] - depth[..., :-1]).abs(), (0, 1)) > 0.4
    return jump.float()


images, depths = street(200)
model = MultiTaskNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    for idx in torch.randperm(len(images)).split(10):
        depth, edge = model(images[idx])
        loss_d = l1_loss_depth(depth, depths[idx])
        loss_e = F.binary_cross_entropy_with_logits(edge, edges(depths[idx]))
        loss = 0.7 * loss_d + 0.3 * loss_e
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: depth {loss_d.item():.4f} edges {loss_e.item():.4f}")

images, depths = street(80)
with torch.no_grad():
    depth, _ = model(images)
known = depths != 0
error = (depth - depths)[known].abs().mean().item() * STD_DEPTH
print(f"absolute error of the depth {error:.4f} metres")
