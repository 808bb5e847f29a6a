"""Train a diffusion model on points in the plane (DDPM, Ho et al., 2020).

    python rings_diffusion.py --data data --out out --seed 3
    python rings_diffusion.py --data data --out out --resume
    python rings_diffusion.py --data data --out out --evaluate

train.csv and val.csv have the columns x and y. val_loss is the error of the predicted noise; val_distance is the
Chamfer distance between samples and the points of val.csv. Both use the averaged weights.
"""

import argparse
import copy
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import track


@dataclass(frozen=True)
class Config:
    timesteps: int = 50
    hidden: int = 128
    time_features: int = 32
    octaves: int = 3
    layers: int = 1

    batch_size: int = 512
    epochs: int = 60
    lr: float = 8e-3
    ema_decay: float = 0.95
    eval_every: int = 12  # epochs
    val_draws: int = 8
    samples: int = 400


def load_points(file):
    return torch.from_numpy(np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.float32))


# --- diffusion ------------------------------------------------------------------------------------------------------


class Diffusion:
    """The forward process q(x_t | x_0) with a linear noise schedule, and ancestral sampling."""

    def __init__(self, timesteps):
        self.timesteps = timesteps
        scale = 1000 / timesteps  # the paper has 1000 steps
        betas = torch.linspace(1e-4 * scale, 0.02 * scale, timesteps, dtype=torch.float64)
        bars = torch.cumprod(1 - betas, dim=0)
        bars_prev = torch.cat([torch.ones(1, dtype=torch.float64), bars[:-1]])
        self.betas, self.alphas, self.alpha_bars = betas.float(), (1 - betas).float(), bars.float()
        self.posterior_variance = (betas * (1 - bars_prev) / (1 - bars)).float()

    def add_noise(self, x, t, noise):
        """Return x_t for points x (B, 2) and timesteps t (B,), which start at 0."""
        bar = self.alpha_bars[t].unsqueeze(1)
        return bar.sqrt() * x + (1 - bar).sqrt() * noise

    def loss(self, model, x, generator=None):
        t = torch.randint(self.timesteps, (len(x),), generator=generator)
        noise = torch.randn(x.shape, generator=generator)
        return F.mse_loss(model(self.add_noise(x, t, noise), t), noise)

    @torch.no_grad()
    def sample(self, model, count, generator=None):
        """Return `count` points (count, 2): start from noise and remove a part of it at each timestep."""
        x = torch.randn(count, 2, generator=generator)
        for t in reversed(range(self.timesteps)):
            noise = model(x, torch.full((count,), t))
            x = (x - self.betas[t] / (1 - self.alpha_bars[t]).sqrt() * noise) / self.alphas[t].sqrt()
            if t > 0:
                x = x + self.posterior_variance[t].sqrt() * torch.randn(x.shape, generator=generator)
        return x


# --- model ----------------------------------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    def __init__(self, width, time_features):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.time = nn.Linear(time_features, width)
        self.outer = nn.Linear(width, width)

    def forward(self, h, time):
        return h + self.outer(F.silu(self.inner(self.norm(h)) + self.time(time)))


class Denoiser(nn.Module):
    """Predict the noise in points x (B, 2) at timesteps t (B,)."""

    def __init__(self, hidden, time_features, octaves, layers):
        super().__init__()
        half = time_features // 2
        time_frequencies = torch.exp(-math.log(1000) * torch.arange(half) / half)
        self.register_buffer("time_frequencies", time_frequencies, persistent=False)
        self.register_buffer("frequencies", 2.0 ** torch.arange(octaves), persistent=False)
        self.stem = nn.Linear(2 + 4 * octaves, hidden)
        self.blocks = nn.ModuleList(ResidualBlock(hidden, time_features) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, 2)

    def forward(self, x, t):
        angles = t.float().unsqueeze(1) * self.time_frequencies
        time = torch.cat([angles.sin(), angles.cos()], dim=1)
        # Without Fourier features (Tancik et al., 2020), the network learns the thin rings slowly.
        angles = (x.unsqueeze(2) * self.frequencies).flatten(1)
        h = self.stem(torch.cat([x, angles.sin(), angles.cos()], dim=1))
        for block in self.blocks:
            h = block(h, time)
        return self.head(F.silu(self.norm(h)))


class EMA:
    """Keep a copy of a model with exponential moving averages of its weights."""

    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        """Update the averages. The decay is smaller at first, so that the initial weights do not stay in them."""
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 10))
        for average, p in zip(self.model.parameters(), model.parameters(), strict=True):
            average.lerp_(p, 1 - decay)

    def state_dict(self):
        return {"model": self.model.state_dict(), "updates": self.updates}

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.updates = state["updates"]


# --- evaluation -----------------------------------------------------------------------------------------------------


def chamfer_distance(a, b):
    """Return the mean distance from each point of a to the nearest point of b, plus the same from b to a."""
    distances = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.min(dim=1).values.mean() + distances.min(dim=0).values.mean()


@torch.no_grad()
def evaluate(model, diffusion, points, config, seed=0):
    """Return the loss on points and the distance of samples from them. Each call uses the same random numbers."""
    g = torch.Generator().manual_seed(seed)
    loss = diffusion.loss(model, points.repeat(config.val_draws, 1), g)
    samples = diffusion.sample(model, config.samples, g)
    return {"val_loss": loss.item(), "val_distance": chamfer_distance(samples, points).item()}


# --- training -------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    config = Config()

    torch.manual_seed(args.seed)
    train = load_points(args.data / "train.csv")
    # Both columns have the same scale: a ring must not become an ellipse.
    mean, std = train.mean(dim=0), train.std()
    val = (load_points(args.data / "val.csv") - mean) / std
    diffusion = Diffusion(config.timesteps)
    model = Denoiser(config.hidden, config.time_features, config.octaves, config.layers)
    ema = EMA(model, config.ema_decay)

    ckpt = None
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
        ema.load_state_dict(ckpt["ema"])
    if args.evaluate:
        track.log(evaluate(ema.model, diffusion, val, config))
        return

    order = torch.Generator().manual_seed(args.seed)
    train_set = TensorDataset((train - mean) / std)
    loader = DataLoader(train_set, config.batch_size, shuffle=True, drop_last=True, generator=order)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr, fused=True)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=config.epochs * len(loader))
    epoch = 0
    if ckpt is not None:
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        epoch = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    while epoch < config.epochs:
        for (x,) in loader:
            loss = diffusion.loss(model, x)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            ema.update(model)
        epoch += 1
        if epoch % config.eval_every == 0 or epoch == config.epochs:
            track.log(evaluate(ema.model, diffusion, val, config), step=epoch * len(loader))
            state = {
                "model": model.state_dict(),
                "ema": ema.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "order": order.get_state(),
                "rng": torch.get_rng_state(),
                "epoch": epoch,
            }
            torch.save(state, args.out / "ckpt.pt")

    points = diffusion.sample(ema.model, config.samples, torch.Generator().manual_seed(args.seed)) * std + mean
    np.savetxt(args.out / "samples.csv", points.numpy(), fmt="%.4f", delimiter=",", header="x,y", comments="")


if __name__ == "__main__":
    main()
