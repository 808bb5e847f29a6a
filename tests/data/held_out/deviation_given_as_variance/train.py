import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(14)


class GaussianLikelihood:
    """Two outputs of the network for each value: mean and (after softplus) sigma."""

    num_parameters = 2

    def params(self, out):
        return out[..., 0], F.softplus(out[..., 1]) + 1e-4

    def loss(self, out, target):
        mu, sigma = self.params(out)
        return F.gaussian_nll_loss(mu, target, sigma)

    def interval(self, out, level=0.9):
        mu, sigma = self.params(out)
        z = Normal(0.0, 1.0).icdf(torch.tensor(0.5 + level / 2))
        return mu - z * sigma, mu + z * sigma


def consumption(n):
    temperature = torch.rand(n) * 40 - 10
    hour = torch.randint(0, 24, (n,)).float()
    day = torch.sin(math.pi * hour / 24)
    mean = 0.02 * (temperature - 18).abs() + day
    noise = 0.08 + 0.12 * day
    y = mean + noise * torch.randn(n)
    x = torch.stack([temperature / 20, torch.sin(2 * math.pi * hour / 24), torch.cos(2 * math.pi * hour / 24)], 1)
    return x, y


def train(model, likelihood, x, y, epochs=30):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = likelihood.loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: nll {total / len(x):.4f}")


likelihood = GaussianLikelihood()
model = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, likelihood.num_parameters))
train(model, likelihood, *consumption(2500))

x, y = consumption(2000)
with torch.no_grad():
    low, high = likelihood.interval(model(x))
inside = ((y > low) & (y < high)).float().mean().item()
print(f"width {(high - low).mean().item():.3f}; share of values in the 90 % interval {inside:.4f}")
