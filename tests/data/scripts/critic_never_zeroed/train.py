import math

import torch
import torch.nn as nn

torch.manual_seed(69)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.main(x)


class Generator(nn.Module):
    def __init__(self, nz=8):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, z):
        return self.main(z)


class GAN:
    def __init__(self, latent_dims=8):
        self.latent_dims = latent_dims
        self.generator, self.discriminator = Generator(latent_dims), Discriminator()
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizerD = torch.optim.Adam(self.discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.optimizerG = torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.5, 0.999))

    def step(self, data):
        ones, zeros = torch.ones(len(data), 1), torch.zeros(len(data), 1)
        errD_real = self.loss(self.discriminator(data), ones)
        errD_real.backward()
        fake = self.generator(torch.randn(len(data), self.latent_dims))
        errD_fake = self.loss(self.discriminator(fake.detach()), zeros)
        errD_fake.backward()
        self.optimizerD.step()
        self.generator.zero_grad()
        errG = self.loss(self.discriminator(fake), ones)
        errG.backward()
        self.optimizerG.step()
        return errD_real.item() + errD_fake.item(), errG.item()


def ring(n):
    a = torch.randint(0, 3, (n,)) * math.pi / 1.5
    return torch.stack([a.cos(), a.sin()], 1) * 1.5 + 0.15 * torch.randn(n, 2)


gan, data = GAN(), ring(3200)
angles = torch.arange(3) * math.pi / 1.5
modes = torch.stack([angles.cos(), angles.sin()], 1) * 1.5
for epoch in range(24):
    for idx in torch.randperm(len(data)).split(64):
        d_err, g_err = gan.step(data[idx])
    with torch.no_grad():
        points = gan.generator(torch.randn(1000, 8))
    near = torch.cdist(points, modes).min(1)
    on_mode = near.values < 0.5
    found = len(near.indices[on_mode].unique())
    if epoch % 4 == 3:
        share = on_mode.float().mean().item()
        print(f"epoch {epoch + 1} D {d_err:.3f} G {g_err:.3f} modes {found} share on a mode {share:.4f}")
