import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(52)
SIZE = 16


def stripes(n):
    """Plane waves: what is missing can be told from what is left."""
    g = torch.arange(SIZE).float()
    k = 0.3 + 0.7 * torch.rand(n, 2, 1, 1)
    phase = 6.28 * torch.rand(n, 1, 1)
    return torch.sin(k[:, 0] * g[:, None] + k[:, 1] * g[None] + phase)[:, None]


def random_mask(size=6):
    mask = torch.zeros(1, 1, SIZE, SIZE)
    y, x = torch.randint(1, SIZE - size, (2,)).tolist()
    mask[..., y : y + size, x : x + size] = 1
    return mask


class InnerCos(nn.Module):
    """Guidance: in the hole, features of the decoder shall be those that the encoder has of the whole image."""

    def __init__(self, strength):
        super().__init__()
        self.strength, self.mask = strength, None

    def set_mask(self, mask):
        self.mask = F.max_pool2d(mask, 2)

    def forward(self, feature, target):
        return self.strength * ((feature - target.detach()) * self.mask).abs().sum() / (self.mask.sum() * len(feature))


class Inpainter(nn.Module):
    def __init__(self, w=24):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(2, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, w, 4, 2, 1))
        self.mid = nn.Sequential(nn.ReLU(), nn.Conv2d(w, w, 5, padding=2), nn.ReLU(), nn.Conv2d(w, w, 5, padding=2))
        self.dec = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(w, 1, 4, 2, 1))
        self.guide = InnerCos(strength=0.1)

    def forward(self, image, mask, whole=None):
        m = mask.expand(len(image), -1, -1, -1)
        h = self.enc(torch.cat([image * (1 - m), m], 1))
        d = h + self.mid(h)
        guidance = 0.0
        if whole is not None:
            guidance = self.guide(d, self.enc(torch.cat([whole, torch.zeros_like(m)], 1)))
        return self.dec(d), guidance


net = Inpainter()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
mask = random_mask()
net.guide.set_mask(mask)
for it in range(700):
    x = stripes(16)
    mask = random_mask()
    out, guidance = net(x, mask, whole=x)
    known = ((out - x).abs() * (1 - mask)).mean()
    hole = ((out - x).abs() * mask).mean()
    loss = known + hole + guidance
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 100 == 99:
        print(f"iter {it + 1}: known {known.item():.4f} hole {hole.item():.4f} guidance {guidance.item():.4f}")

error = []
with torch.no_grad():
    for _ in range(20):
        x, mask = stripes(20), random_mask()
        error.append((((net(x, mask)[0] - x) ** 2 * mask).sum() / mask.sum() / len(x)).item())
print(f"squared error in the hole: {sum(error) / len(error):.4f}")
