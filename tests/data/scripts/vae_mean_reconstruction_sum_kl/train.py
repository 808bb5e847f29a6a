import argparse
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_curves(n, generator):
    """Smooth curves on 48 points with random amplitude, frequency and phase."""
    t = torch.linspace(0, 1, 48)
    a = 0.6 + 0.8 * torch.rand(n, 1, generator=generator)
    f = 1.0 + 1.0 * torch.rand(n, 1, generator=generator)
    p = 2 * torch.rand(n, 1, generator=generator)
    return a * torch.sin(6.2832 * f * t + p) + 0.05 * torch.randn(n, 48, generator=generator)


class VAE(nn.Module):
    def __init__(self, dim=48, hidden=64, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu
        if self.training:
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def loss_function(recon, x, mu, logvar):
    rec = F.mse_loss(recon, x)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / x.size(0)
    return rec + kld, rec, kld


def main():
    parser = argparse.ArgumentParser(description="VAE on curves")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=50)
    args = parser.parse_args()
    torch.manual_seed(8)
    g = torch.Generator().manual_seed(8)
    train_loader = DataLoader(TensorDataset(make_curves(1500, g)), batch_size=args.batch_size, shuffle=True)
    x_val = make_curves(400, g)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        model.train()
        for (x,) in train_loader:
            optimizer.zero_grad()
            recon, mu, logvar = model(x)
            loss, rec, kld = loss_function(recon, x, mu, logvar)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} rec {rec.item():.4f} kld {kld.item():.4f}")
    model.eval()
    with torch.no_grad():
        recon, _, _ = model(x_val)
    print(f"validation reconstruction mse {F.mse_loss(recon, x_val).item():.4f}")


if __name__ == "__main__":
    main()
