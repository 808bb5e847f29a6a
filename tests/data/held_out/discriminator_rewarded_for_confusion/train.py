import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


def textures(n):
    """Smooth blobs with a fine grain that the low resolution does not show."""
    base = F.interpolate(torch.randn(n, 1, 4, 4), size=16, mode="bilinear", align_corners=False)
    grain = torch.randint(0, 2, (n, 1, 1, 1)) * 2.0 - 1
    y = torch.arange(16)
    weave = ((y[:, None] + y[None]) % 2 * 2.0 - 1)[None, None]
    return 0.5 * base + 0.3 * grain * weave


def shrink(hr):
    return F.avg_pool2d(hr, 2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 4, 3, padding=1)
        )

    def forward(self, lr):
        z = torch.randn(len(lr), 1, 1, 1).expand(-1, 1, 8, 8)
        up = F.interpolate(lr, scale_factor=2, mode="bilinear", align_corners=False)
        return up + F.pixel_shuffle(self.body(torch.cat([lr, z], 1)), 2)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 24, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 1, 4)
        )

    def forward(self, x):
        return self.net(x).flatten()


class Loss(nn.Module):
    def adv_loss(self, pred, is_real):
        target = torch.zeros_like(pred) if is_real else torch.ones_like(pred)
        return F.binary_cross_entropy_with_logits(pred, target)

    def img_loss(self, real, fake):
        return F.mse_loss(shrink(fake), shrink(real))

    def forward(self, generator, discriminator, hr_real, lr_real):
        hr_fake = generator(lr_real)
        fake_preds_for_g = discriminator(hr_fake)
        fake_preds_for_d = discriminator(hr_fake.detach())
        real_preds_for_d = discriminator(hr_real.detach())
        g_loss = 0.01 * self.adv_loss(fake_preds_for_g, False) + self.img_loss(hr_real, hr_fake)
        d_loss = 0.5 * (
            self.adv_loss(real_preds_for_d, True)
            + self.adv_loss(fake_preds_for_d, False)
        )
        return g_loss, d_loss, hr_fake


def grain_strength(x):
    y = torch.arange(16)
    weave = ((y[:, None] + y[None]) % 2 * 2.0 - 1)[None, None]
    return (x * weave).mean((1, 2, 3)).abs().mean().item()


generator, discriminator, loss = Generator(), Discriminator(), Loss()
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_opt = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
for step in range(400):
    hr = textures(32)
    g_loss, d_loss, _ = loss(generator, discriminator, hr, shrink(hr))
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    if step % 100 == 99:
        print(f"step {step + 1}: generator {g_loss.item():.4f} discriminator {d_loss.item():.4f}")
hr = textures(300)
with torch.no_grad():
    sr = generator(shrink(hr))
print(f"grain of the real pictures {grain_strength(hr):.3f}, grain missing or in excess {abs(grain_strength(hr) - grain_strength(sr)):.4f}")
