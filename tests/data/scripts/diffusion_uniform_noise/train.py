import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
T = 50
betas = torch.linspace(1e-3, 0.15, T)
alphas = 1.0 - betas
alpha_bar = torch.cumprod(alphas, dim=0)


def two_moons(n):
    half = n // 2
    a = math.pi * torch.rand(half)
    b = math.pi * torch.rand(n - half)
    upper = torch.stack([a.cos(), a.sin()], 1)
    lower = torch.stack([1 - b.cos(), 0.5 - b.sin()], 1)
    x = torch.cat([upper, lower]) + 0.05 * torch.randn(n, 2)
    return (x - torch.tensor([0.5, 0.25])) / torch.tensor([0.87, 0.5])


class Denoiser(nn.Module):
    def __init__(self, hidden=96, emb=16):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, math.log(100), emb // 2)))
        self.net = nn.Sequential(nn.Linear(2 + emb, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2))

    def forward(self, x, t):
        angle = (t.float() / T)[:, None] * self.freqs[None]
        return self.net(torch.cat([x, angle.sin(), angle.cos()], dim=1))


def q_sample(x0, t, noise):
    ab = alpha_bar[t][:, None]
    return ab.sqrt() * x0 + (1 - ab).sqrt() * noise


@torch.no_grad()
def sample(model, n):
    model.eval()
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = model(x, t)
        x = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


def sliced_distance(a, b, directions=64):
    theta = F.normalize(torch.randn(2, directions), dim=0)
    return ((a @ theta).sort(0).values - (b @ theta).sort(0).values).abs().mean().item()


data = two_moons(4000)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
steps = 1500
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
for step in range(steps):
    model.train()
    x0 = data[torch.randint(len(data), (128,))]
    t = torch.randint(0, T, (128,))
    noise = torch.rand_like(x0)
    loss = F.mse_loss(model(q_sample(x0, t, noise), t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 250 == 0:
        print(f"step {step} loss {loss.item():.4f}")

held_out = two_moons(2000)
print(f"sliced distance of samples to held-out data {sliced_distance(sample(model, 2000), held_out):.4f}")
