"""WGAN-GP on eight Gaussians."""
import math

import torch
import torch.nn as nn

torch.manual_seed(3)
BATCH, N_CRITIC, LAMBDA, STEPS = 128, 3, 10.0, 900


def real_batch(n):
    angle = 2 * math.pi * torch.randint(0, 8, (n,)) / 8
    return 2 * torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(n, 2)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        logit = self.net(x)
        return torch.sigmoid(logit), logit


generator = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
discriminator = Discriminator()
g_optim = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
d_optim = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    alpha = torch.rand(len(real), 1)
    interpolates = (real + alpha * (fake - real)).requires_grad_(True)
    d_inter, _ = discriminator(interpolates)
    gradients = torch.autograd.grad(d_inter.sum(), interpolates, create_graph=True)[0]
    slopes = gradients.pow(2).sum(1).add(1e-12).sqrt()
    return ((slopes - 1) ** 2).mean()


def sliced_distance(a, b, directions=100):
    theta = torch.randn(2, directions)
    theta = theta / theta.norm(dim=0)
    return ((a @ theta).sort(0).values - (b @ theta).sort(0).values).abs().mean().item()


for step in range(STEPS):
    for _ in range(N_CRITIC):
        real = real_batch(BATCH)
        fake = generator(torch.randn(BATCH, 4)).detach()
        _, d_real = discriminator(real)
        _, d_fake = discriminator(fake)
        d_loss = d_fake.mean() - d_real.mean() + LAMBDA * gradient_penalty(real, fake)
        d_optim.zero_grad()
        d_loss.backward()
        d_optim.step()
    _, d_fake = discriminator(generator(torch.randn(BATCH, 4)))
    g_loss = -d_fake.mean()
    g_optim.zero_grad()
    g_loss.backward()
    g_optim.step()
    if step % 150 == 149:
        print(f"step {step + 1} d_loss {d_loss.item():.3f} g_loss {g_loss.item():.3f}")
with torch.no_grad():
    samples = generator(torch.randn(2000, 4))
print(f"sliced Wasserstein distance {sliced_distance(samples, real_batch(2000)):.4f}")
