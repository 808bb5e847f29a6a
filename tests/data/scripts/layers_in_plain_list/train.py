"""Surrogate of a pendulum simulator: state and torque in, next state out."""
import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def simulate(state, torque, dt=0.15, steps=4):
    theta, omega = state[:, 0], state[:, 1]
    for _ in range(steps):
        omega = omega + dt / steps * 4 * (torque - 9.8 * torch.sin(theta) - 0.3 * omega)
        theta = theta + dt / steps * 4 * omega
    return torch.stack([theta, omega], dim=1)


def sample(n, gen):
    theta = (torch.rand(n, generator=gen) * 2 - 1) * math.pi
    omega = torch.randn(n, generator=gen) * 2
    torque = torch.randn(n, generator=gen) * 3
    state = torch.stack([theta, omega], dim=1)
    nxt = simulate(state, torque)
    return torch.cat([state, torque[:, None]], 1), nxt - state


class ResidualMLP(nn.Module):
    def __init__(self, d_in, d_out, width=48, depth=3):
        super().__init__()
        self.inp = nn.Linear(d_in, width)
        self.blocks = [
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            for _ in range(depth)
        ]
        self.out = nn.Linear(width, d_out)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def r2(pred, target):
    ss = ((target - pred) ** 2).sum(0)
    tot = ((target - target.mean(0)) ** 2).sum(0)
    return (1 - ss / tot).mean().item()


def main(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    x, y = sample(2000, gen)
    xv, yv = sample(500, gen)
    xm, xs, ym, ys = x.mean(0), x.std(0), y.mean(0), y.std(0)
    x, xv, y, yv = (x - xm) / xs, (xv - xm) / xs, (y - ym) / ys, (yv - ym) / ys
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch, shuffle=True)

    model = ResidualMLP(3, 2)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        model.eval()
        with torch.no_grad():
            score = r2(model(xv), yv)
        print(f"epoch {epoch} train mse {loss.item():.4f} val R2 {score:.4f}")
    print(f"validation R2: {score:.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch", type=int, default=50)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=1)
    main(p.parse_args())
