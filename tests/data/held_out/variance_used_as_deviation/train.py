import math

import torch
import torch.nn as nn

torch.manual_seed(31)
D, Z = 12, 3
mixing = torch.randn(Z, 24) * 0.9
readout = torch.randn(24, D) * 0.5


def draw(n):
    return torch.tanh(torch.randn(n, Z) @ mixing) @ readout + 0.3 * torch.randn(n, D)


def log_normal(x, mu, logvar):
    return -0.5 * (math.log(2 * math.pi) + logvar + (x - mu) ** 2 / logvar.exp()).sum(-1)


def reparametrize_gaussian(mu, logvar):
    noise = torch.randn_like(mu)
    return mu + noise * logvar.exp()


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(D, 64), nn.Tanh(), nn.Linear(64, 2 * Z))
        self.dec = nn.Sequential(nn.Linear(Z, 64), nn.Tanh(), nn.Linear(64, D))
        self.noise = nn.Parameter(torch.zeros(D))

    def encode(self, x):
        return self.enc(x).chunk(2, -1)

    def log_likelihood(self, x, z):
        return log_normal(x, self.dec(z), self.noise)


def elbo(model, x):
    mu, logvar = model.encode(x)
    z = reparametrize_gaussian(mu, logvar)
    kl = 0.5 * (mu**2 + logvar.exp() - 1 - logvar).sum(-1)
    return model.log_likelihood(x, z) - kl


@torch.no_grad()
def iwae(model, x, k=200):
    """Importance weighted bound of the log-likelihood with k samples."""
    mu, logvar = model.encode(x)
    mu, logvar = mu.expand(k, -1, -1), logvar.expand(k, -1, -1)
    z = reparametrize_gaussian(mu, logvar)
    prior = log_normal(z, torch.zeros_like(z), torch.zeros_like(z))
    weights = model.log_likelihood(x, z) + prior - log_normal(z, mu, logvar)
    return (torch.logsumexp(weights, 0) - math.log(k)).mean().item()


x_train, x_test = draw(3000), draw(500)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(25):
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(60):
        loss = -elbo(vae, x_train[idx]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} negative ELBO {total / len(x_train):.4f}")
print(f"test negative IWAE bound {-iwae(vae, x_test):.4f}")
