"""Diffusion prior for echo frames.  A new frame is drawn by a warm start from a rough estimate of it."""
import math

import torch
import torch.nn as nn

torch.manual_seed(44)
SIZE = 10


def frames(n):
    """A ring-shaped chamber, bright wall, of varying place and radius."""
    g = torch.arange(SIZE).float()
    c, r = 3.5 + 2 * torch.rand(n, 2, 1, 1), 2 + 1.5 * torch.rand(n, 1, 1)
    d = ((g[:, None] - c[:, 0]) ** 2 + (g[None] - c[:, 1]) ** 2).sqrt()
    return 2 * torch.exp(-((d - r) ** 2) / 0.8)[:, None] - 1


class Denoiser(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.inp, self.time = nn.Linear(SIZE * SIZE, hidden), nn.Linear(2, hidden)
        self.mid1, self.mid2 = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, SIZE * SIZE)

    def forward(self, x, noise_rate):
        t = torch.stack([noise_rate, noise_rate**2], -1)
        h = nn.functional.silu(self.inp(x.flatten(1)) + self.time(t))
        h = h + nn.functional.silu(self.mid1(h))
        h = h + nn.functional.silu(self.mid2(h))
        return self.out(h).view_as(x)


class DiffusionModel:
    def __init__(self):
        self.net = Denoiser()

    @staticmethod
    def diffusion_schedule(times):
        return torch.sin(times * math.pi / 2), torch.cos(times * math.pi / 2)

    def train_step(self, images, optimizer):
        noise, times = torch.randn_like(images), torch.rand(len(images))
        noise_rate, signal_rate = self.diffusion_schedule(times)
        noisy = signal_rate.view(-1, 1, 1, 1) * images + noise_rate.view(-1, 1, 1, 1) * noise
        loss = (self.net(noisy, noise_rate) - images).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def prepare_schedule(self, initial_samples, initial_step, step_size):
        base_times = torch.ones(len(initial_samples))
        times = base_times - (initial_step - 1) * step_size
        noise_rate, signal_rate = (r.view(-1, 1, 1, 1) for r in self.diffusion_schedule(times))
        return base_times, signal_rate * initial_samples + noise_rate * torch.randn_like(initial_samples)

    @torch.no_grad()
    def sample(self, initial_samples, n_steps=6, initial_step=3):
        step_size = 1.0 / n_steps
        base_times, noisy = self.prepare_schedule(initial_samples, initial_step, step_size)
        for step in range(initial_step, n_steps):
            noise_rate, signal_rate = self.diffusion_schedule(base_times - step * step_size)
            image = self.net(noisy, noise_rate)
            noise = (noisy - signal_rate.view(-1, 1, 1, 1) * image) / noise_rate.view(-1, 1, 1, 1)
            noise_rate, signal_rate = self.diffusion_schedule(base_times - (step + 1) * step_size)
            noisy = signal_rate.view(-1, 1, 1, 1) * image + noise_rate.view(-1, 1, 1, 1) * noise
        return image


model = DiffusionModel()
optimizer = torch.optim.Adam(model.net.parameters(), lr=1e-3)
for it in range(2000):
    loss = model.train_step(frames(64), optimizer)
    if it % 400 == 399:
        print(f"iteration {it + 1} loss {loss:.4f}")
truth = frames(400)
estimate = truth + 0.15 * torch.randn_like(truth)
result = model.sample(estimate)
print(f"error of the estimate {(estimate - truth).pow(2).mean().item():.4f}, of the warm start {(result - truth).pow(2).mean().item():.4f}")
