"""Variational autoencoder on 16x16 pictures of bars."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SIDE, LATENT = 16, 6


def bars(n, seed):
    g = torch.Generator().manual_seed(seed)
    pos = torch.randint(1, SIDE - 1, (n, 2), generator=g)
    thick = torch.randint(1, 4, (n,), generator=g)
    grid = torch.arange(SIDE)
    rows = (grid[None, :, None] - pos[:, 0, None, None]).abs() < thick[:, None, None]
    cols = (grid[None, None, :] - pos[:, 1, None, None]).abs() < thick[:, None, None]
    return (rows | cols).float().flatten(1)


class VAE(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, LATENT)
        self.logvar = nn.Linear(hidden, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, SIDE * SIDE))

    def encode(self, x):
        h = self.encoder(2 * x - 1)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(logits, x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return recon, kl


def evaluate(model, loader):
    model.eval()
    wrong = n = 0
    with torch.no_grad():
        for (x,) in loader:
            logits, _, _ = model(x)
            wrong += ((logits > 0) != (x > 0.5)).sum().item()
            n += x.numel()
    return wrong / n


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(TensorDataset(bars(1500, 0)), batch_size=50, shuffle=True)
    val_loader = DataLoader(TensorDataset(bars(300, 1)), batch_size=150)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        model.train()
        for (x,) in train_loader:
            logits, mu, logvar = model(x)
            recon, kl = elbo_terms(logits, x, mu, logvar)
            loss = recon + kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        err = evaluate(model, val_loader)
        print(f"epoch {epoch} recon {recon.item():.3f} kl {kl.item():.3f} val pixel error {err:.3f}")
    print(f"fraction of wrong pixels in reconstruction {err:.4f}")


main()
