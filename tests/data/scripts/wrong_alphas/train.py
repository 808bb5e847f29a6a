import math

import torch
from torch import nn

torch.manual_seed(81)
TIMESTEPS, SAMPLING = 30, 10


def linear_beta_schedule(timesteps):
    scale = 1000 / timesteps
    return torch.linspace(scale * 1e-4, scale * 0.02, timesteps)


class Denoiser(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, 8)))
        self.net = nn.Sequential(nn.Linear(1 + 16, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, x, t):
        a = (t.float() / TIMESTEPS)[:, None] * self.freqs
        return self.net(torch.cat([x, a.sin(), a.cos()], 1))


class GaussianDiffusion(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        alphas_cumprod = torch.cumprod(1.0 - linear_beta_schedule(TIMESTEPS), 0)
        self.register_buffer("alphas_cumprod", alphas_cumprod)
        self.register_buffer("alphas_cumprod_prev", torch.cat([torch.ones(1), alphas_cumprod[:-1]]))

    def forward(self, x0):
        t = torch.randint(0, TIMESTEPS, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.alphas_cumprod[t][:, None]
        return nn.functional.mse_loss(self.model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)

    @torch.no_grad()
    def ddim_sample(self, n):
        times = torch.linspace(0.0, TIMESTEPS, steps=SAMPLING + 2)[:-1]
        times = list(reversed(times.int().tolist()))
        time_pairs = list(zip(times[:-1], times[1:]))
        img = torch.randn(n, 1)
        for time, time_next in time_pairs:
            alpha = self.alphas_cumprod_prev[time]
            alpha_next = self.alphas_cumprod_prev[time_next]
            pred_noise = self.model(img, torch.full((n,), time))
            x_start = (img - (1 - alpha).sqrt() * pred_noise) / alpha.sqrt()
            img = x_start * alpha_next.sqrt() + (1 - alpha_next).sqrt() * pred_noise
        return img


def data(n):
    return torch.where(torch.rand(n, 1) < 0.5, -0.8, 0.8) + 0.05 * torch.randn(n, 1)


diffusion = GaussianDiffusion(Denoiser())
opt = torch.optim.Adam(diffusion.parameters(), lr=2e-3)
for step in range(1200):
    diffusion.train()
    loss = diffusion(data(128))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 300 == 299:
        print(f"step {step + 1}: loss {loss.item():.4f}")
diffusion.eval()
sampled, real = diffusion.ddim_sample(2000).sort(0).values, data(2000).sort(0).values
print(f"distance between samples and data: {(sampled - real).abs().mean().item():.4f}")
