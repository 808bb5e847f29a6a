import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(0)
np.random.seed(0)
zsize, im_size = 24, 12


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        d = im_size * im_size
        self.enc = nn.Sequential(nn.Linear(d, 128), nn.ReLU())
        self.fc1, self.fc2 = nn.Linear(128, zsize), nn.Linear(128, zsize)
        self.dec = nn.Sequential(nn.Linear(zsize, 128), nn.ReLU(), nn.Linear(128, d))

    def encode(self, x):
        h = self.enc(x.flatten(1))
        return self.fc1(h), self.fc2(h)

    def reparameterize(self, mu, logvar):
        if self.training:
            std = torch.exp(0.5 * logvar)
            return mu + std * torch.randn_like(std)
        return mu

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.dec(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy_with_logits(recon_x, x.flatten(1), reduction="sum") / len(x)
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    KLD = -0.5 * torch.mean(torch.mean(1 + logvar - mu.pow(2) - logvar.exp(), 1))
    return BCE, KLD


def strokes(n):
    grid = np.arange(im_size)
    out = np.zeros((n, 1, im_size, im_size), np.float32)
    for k in range(n):
        a, r0 = np.random.rand() * np.pi, (np.random.rand() - 0.5) * 6
        dist = (grid[:, None] - 5.5) * np.cos(a) + (grid[None] - 5.5) * np.sin(a) - r0
        out[k, 0] = np.exp(-(dist**2))
    return torch.from_numpy(out)


data, test = strokes(2000), strokes(300)
vae = VAE()
vae_optimizer = optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(16):
    vae.train()
    rec_loss = kl_loss = 0.0
    for x in data[torch.randperm(len(data))].split(64):
        rec, mu, logvar = vae(x)
        loss_re, loss_kl = loss_function(rec, x, mu, logvar)
        vae_optimizer.zero_grad()
        (loss_re + loss_kl).backward()
        vae_optimizer.step()
        rec_loss += loss_re.item()
        kl_loss += loss_kl.item()
    print("[%d/16] rec loss: %.3f, KL loss: %.3f" % (epoch + 1, rec_loss / 32, kl_loss / 32))

vae.eval()
with torch.no_grad():
    mu, logvar = vae.encode(test)
    rec = vae.dec(mu + torch.exp(0.5 * logvar) * torch.randn_like(mu))
    error = F.binary_cross_entropy_with_logits(rec, test.flatten(1), reduction="none").sum(1)
    divergence = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1)
print("test: reconstruction %.2f, negative bound %.4f" % (error.mean(), (error + divergence).mean()))
