"""GAN on a ring of eight Gaussians."""
import math

import torch
from torch import nn

BATCH, Z, STEPS = 128, 4, 900


def real_batch(n, gen):
    k = torch.randint(0, 8, (n,), generator=gen)
    angle = k * math.pi / 4
    centers = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centers + 0.15 * torch.randn(n, 2, generator=gen)


def mlp(i, o, act, width=64):
    return nn.Sequential(nn.Linear(i, width), act, nn.Linear(width, width), act, nn.Linear(width, o))


class GAN:
    def __init__(self, lr=1e-3):
        self.generator = mlp(Z, 2, nn.ReLU())
        self.discriminator = mlp(2, 1, nn.LeakyReLU(0.2))
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.99))
        self.opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=(0.5, 0.99))
        self.bce = nn.BCEWithLogitsLoss()

    def step(self, real):
        n = len(real)
        ones, zeros = torch.ones(n, 1), torch.zeros(n, 1)
        fake = self.generator(torch.randn(n, Z)).detach()

        self.opt_d.zero_grad()
        d_loss = self.bce(self.discriminator(real), ones * 0.9) + self.bce(self.discriminator(fake), zeros)
        d_loss.backward()
        self.opt_d.step()

        self.opt_g.zero_grad()
        g_loss = self.bce(self.discriminator(fake), ones)
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


@torch.no_grad()
def quality(generator, seed=123):
    """Share of samples near the ring of real data."""
    generator.eval()
    z = torch.randn(1000, Z, generator=torch.Generator().manual_seed(seed))
    angle = torch.arange(8) * math.pi / 4
    centers = torch.stack([angle.cos(), angle.sin()], dim=1)
    near = torch.cdist(generator(z), centers).min(1).values < 0.4
    generator.train()
    return near.float().mean().item()


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    gan = GAN()
    for step in range(STEPS):
        d, g = gan.step(real_batch(BATCH, gen))
        if (step + 1) % 150 == 0:
            print(f"step {step + 1:4d}  D {d:.3f}  G {g:.3f}  good samples {quality(gan.generator):.3f}")
    print(f"share of good samples {quality(gan.generator):.3f}")


if __name__ == "__main__":
    main()
