"""Denoising diffusion for two-dimensional points (a ring)."""
import copy
import math

import torch
from torch import nn

T = 40


def ring(n, gen):
    angle = torch.rand(n, generator=gen) * 2 * math.pi
    radius = 1.4 + 0.06 * torch.randn(n, generator=gen)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class Schedule:
    def __init__(self, steps=T, low=2e-3, high=0.25):
        self.beta = torch.linspace(low, high, steps)
        self.alpha = 1.0 - self.beta
        self.alpha_bar = torch.cumprod(self.alpha, dim=0)

    def add_noise(self, x0, t, gen):
        noise = torch.randn(x0.shape, generator=gen)
        a = self.alpha_bar[t].unsqueeze(1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise, noise


class NoiseNet(nn.Module):
    def __init__(self, width=80, freqs=4):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(freqs) * 0.5)
        self.net = nn.Sequential(
            nn.Linear(2 + 2 * freqs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2),
        )

    def forward(self, x, t):
        angle = t[:, None].float() / T * self.freqs
        return self.net(torch.cat([x, angle.sin(), angle.cos()], dim=1))


@torch.no_grad()
def sample(model, schedule, n, gen):
    model.eval()
    x = torch.randn(n, 2, generator=gen)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = model(x, t)
        a, ab = schedule.alpha[i], schedule.alpha_bar[i]
        x = (x - (1 - a) / (1 - ab).sqrt() * eps) / a.sqrt()
        if i > 0:
            variance = schedule.beta[i] * (1 - schedule.alpha_bar[i - 1]) / (1 - ab)
            x = x + variance.sqrt() * torch.randn(n, 2, generator=gen)
    return x


def distance_to_data(points, gen):
    return torch.cdist(points, ring(2000, gen)).min(1).values.mean().item()


def main(steps=1000, batch=256, decay=0.99):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    schedule, model = Schedule(), NoiseNet()
    ema = copy.deepcopy(model).requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for step in range(1, steps + 1):
        model.train()
        x0 = ring(batch, gen)
        t = torch.randint(0, T, (batch,), generator=gen)
        x_t, _ = schedule.add_noise(x0, t, gen)
        noise = torch.randn(x0.shape, generator=gen)
        loss = nn.functional.mse_loss(model(x_t, t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        for p, q in zip(ema.parameters(), model.parameters()):
            p.mul_(decay).add_(q.detach(), alpha=1 - decay)
        if step % 250 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    pts = sample(ema, schedule, 1000, torch.Generator().manual_seed(5))
    print(f"mean distance of samples to data {distance_to_data(pts, torch.Generator().manual_seed(6)):.4f}")


if __name__ == "__main__":
    main()
