import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn

torch.manual_seed(20)
np.random.seed(20)
latent_dim, img_shape, lambda_gp, n_critic = 8, (1, 8, 8), 10, 3


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(latent_dim, 64), nn.LeakyReLU(0.2), nn.Linear(64, int(np.prod(img_shape))), nn.Tanh()
        )

    def forward(self, z):
        return self.model(z).view(-1, *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(int(np.prod(img_shape)), 96), nn.LeakyReLU(0.2), nn.Linear(96, 48), nn.LeakyReLU(0.2),
            nn.Linear(48, 1),
        )

    def forward(self, img):
        return self.model(img.flatten(1))


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.rand(real_samples.size(0), 1, 1, 1)
    interpolates = (alpha * real_samples + (1 - alpha) * fake_samples).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = autograd.grad(
        outputs=d_interpolates, inputs=interpolates, grad_outputs=torch.ones_like(d_interpolates),
        create_graph=True, retain_graph=True, only_inputs=True,
    )[0]
    gradient_penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
    return gradient_penalty


def digits(n):
    img = -np.ones((n, *img_shape), np.float32)
    for k in range(n):
        r, c = np.random.randint(0, 5, 2)
        img[k, 0, r : r + 3, c : c + 3] = 1.0
    return torch.from_numpy(img)


images = digits(1200)
generator, discriminator = Generator(), Discriminator()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.9))
for epoch in range(16):
    for i, real_imgs in enumerate(images[torch.randperm(len(images))].split(48)):
        fake_imgs = generator(torch.randn(len(real_imgs), latent_dim)).detach()
        penalty = compute_gradient_penalty(discriminator, real_imgs, fake_imgs)
        d_loss = discriminator(fake_imgs).mean() - discriminator(real_imgs).mean() + lambda_gp * penalty
        optimizer_D.zero_grad()
        d_loss.backward()
        optimizer_D.step()
        if i % n_critic == 0:
            g_loss = -discriminator(generator(torch.randn(48, latent_dim))).mean()
            optimizer_G.zero_grad()
            g_loss.backward()
            optimizer_G.step()
    print("[Epoch %d/16] [D loss: %f] [G loss: %f]" % (epoch, d_loss.item(), g_loss.item()))

mix = torch.lerp(images[:200], generator(torch.randn(200, latent_dim)).detach(), torch.rand(200, 1, 1, 1))
slope = autograd.grad(discriminator(mix.requires_grad_(True)).sum(), mix)[0].flatten(1).norm(dim=1).mean().item()
print("slope of the critic %.4f, distance from 1: %.4f" % (slope, abs(slope - 1)))
