"""Variational inference: an affine coupling flow is fitted to an unnormalised density."""
import math

import torch
import torch.nn as nn

torch.manual_seed(13)


def target_log_prob(x):
    """Banana with a known normalising constant."""
    a = x[:, 0] / 1.5
    b = (x[:, 1] - 0.5 * x[:, 0] ** 2 + 1) / 0.5
    return -0.5 * (a**2 + b**2) - math.log(2 * math.pi * 1.5 * 0.5)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, z):
        keep, move = (z[:, 1:], z[:, :1]) if self.flip else (z[:, :1], z[:, 1:])
        s, t = self.net(keep).chunk(2, 1)
        s = 1.5 * torch.tanh(s)
        move = move * torch.exp(s) + t
        out = torch.cat([move, keep], 1) if self.flip else torch.cat([keep, move], 1)
        return out, s.squeeze(1)


class NormalizingFlow(nn.Module):
    def __init__(self, n_layers=4):
        super().__init__()
        self.flows = nn.ModuleList([Coupling(i % 2 == 1) for i in range(n_layers)])

    def forward_and_log_det(self, z):
        log_det = torch.zeros(len(z))
        for flow in self.flows:
            z, log_d = flow(z)
            log_det -= log_d
        return z, log_det

    def sample(self, n):
        z = torch.randn(n, 2)
        base = -0.5 * z.pow(2).sum(1) - math.log(2 * math.pi)
        x, log_det = self.forward_and_log_det(z)
        return x, base - log_det


flow = NormalizingFlow()
optimizer = torch.optim.Adam(flow.parameters(), lr=4e-3)
for step in range(500):
    x, log_q = flow.sample(256)
    loss = (log_q - target_log_prob(x)).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1} reverse KL {loss.item():.4f}")
with torch.no_grad():
    x, _ = flow.sample(4000)
print(f"deviation of the first coordinate (target 1.5): {x[:, 0].std().item():.4f}")
