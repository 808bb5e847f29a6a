#!/usr/bin/env python3
# Toy DDPM in 2D: learns the distribution of the points in train.csv (columns x, y) and samples new ones.
#
#   [1] Ho et al., Denoising Diffusion Probabilistic Models, 2020
#   [2] Tancik et al., Fourier Features Let Networks Learn High Frequency Functions, 2020
#
# Everything that is logged and sampled comes from the EMA weights.
import math
from argparse import ArgumentParser
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import mse_loss, silu
from torch.optim import Adam
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader

import track

cfg = dict(
    diffusion=dict(T=50, beta_min=1e-4, beta_max=0.02),
    net=dict(dim=128, depth=1, time_dim=32, octaves=3),
    train=dict(epochs=60, batch_size=512, lr=8e-3, final_lr=0.05, ema=0.95),
    val=dict(every=12, noise_draws=8, num_samples=400),
)


def make_schedule(T, beta_min, beta_max):
    # [1] has T = 1000; with fewer steps each one has to add more noise
    betas = torch.linspace(beta_min, beta_max, T, dtype=torch.float64) * (1000 / T)
    alphas = 1 - betas
    abar = alphas.cumprod(0)
    abar_prev = torch.cat([abar.new_ones(1), abar[:-1]])
    var = betas * (1 - abar_prev) / (1 - abar)  # of q(x_{t-1} | x_t, x_0), eq. 7
    schedule = dict(betas=betas, alphas=alphas, abar=abar, var=var)
    return {k: v.float() for k, v in schedule.items()}


def q_sample(s, x0, t, eps):
    abar = s["abar"][t][:, None]
    return abar.sqrt() * x0 + (1 - abar).sqrt() * eps


def p_losses(s, net, x0, rng=None):
    # L_simple, eq. 14
    T = len(s["betas"])
    t = torch.randint(T, (x0.shape[0],), generator=rng)
    eps = torch.randn(x0.shape, generator=rng)
    return mse_loss(net(q_sample(s, x0, t, eps), t), eps)


@torch.no_grad()
def p_sample_loop(s, net, n, rng):
    # algorithm 2
    x = torch.randn(n, 2, generator=rng)
    for i in range(len(s["betas"]) - 1, -1, -1):
        eps = net(x, torch.full((n,), i, dtype=torch.long))
        mean = (x - s["betas"][i] / (1 - s["abar"][i]).sqrt() * eps) / s["alphas"][i].sqrt()
        x = mean
        if i > 0:  # the last step is without noise
            x = mean + s["var"][i].sqrt() * torch.randn(x.shape, generator=rng)
    return x


def sincos(angles):
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Block(nn.Module):
    def __init__(self, dim, time_dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = nn.Linear(dim, dim)
        self.time = nn.Linear(time_dim, dim)
        self.outer = nn.Linear(dim, dim)

    def forward(self, h, temb):
        out = self.inner(self.norm(h)) + self.time(temb)
        return h + self.outer(silu(out))


class EpsNet(nn.Module):
    def __init__(self, dim, depth, time_dim, octaves):
        super().__init__()
        half = time_dim // 2
        self.register_buffer("time_freqs", torch.exp(-math.log(1000) / half * torch.arange(half)), persistent=False)
        self.register_buffer("freqs", 2.0 ** torch.arange(octaves), persistent=False)
        self.stem = nn.Linear(2 + 4 * octaves, dim)
        self.blocks = nn.ModuleList([Block(dim, time_dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, x, t):
        # x (B, 2), t (B,) in 0 .. T-1
        temb = sincos(t[:, None] * self.time_freqs)
        # plain coordinates are too smooth for the thin rings, hence [2]
        fourier = sincos((x[:, :, None] * self.freqs).flatten(1))
        h = self.stem(torch.cat([x, fourier], dim=-1))
        for block in self.blocks:
            h = block(h, temb)
        return self.head(silu(self.norm(h)))


@torch.no_grad()
def update_ema(ema, net, step, max_decay):
    # short memory at the start, or the random init would stay in the average
    decay = min(max_decay, step / (step + 10))
    for p_ema, p in zip(ema.parameters(), net.parameters(), strict=True):
        p_ema.lerp_(p, 1 - decay)


def chamfer(a, b):
    d = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    return d.amin(dim=1).mean() + d.amin(dim=0).mean()


@torch.no_grad()
def validate(s, net, x_val):
    rng = torch.Generator().manual_seed(0)  # equal noise for all checkpoints
    loss = p_losses(s, net, x_val.repeat(cfg["val"]["noise_draws"], 1), rng)
    samples = p_sample_loop(s, net, cfg["val"]["num_samples"], rng)
    return dict(val_loss=loss.item(), val_distance=chamfer(samples, x_val).item())


def read_csv(path):
    return torch.tensor(np.genfromtxt(path, delimiter=",", skip_header=1), dtype=torch.float32)


def main(opt):
    opt.out.mkdir(parents=True, exist_ok=True)
    ckpt = opt.out / "ckpt.pt"

    torch.manual_seed(opt.seed)
    rng = torch.Generator().manual_seed(opt.seed)  # order of the training points
    hp = cfg["train"]

    x_train, x_val = read_csv(opt.data / "train.csv"), read_csv(opt.data / "val.csv")
    shift, scale = x_train.mean(0), x_train.std()  # one scale for both axes, to keep circles round
    x_train, x_val = (x_train - shift) / scale, (x_val - shift) / scale
    dl = DataLoader(x_train, batch_size=hp["batch_size"], shuffle=True, drop_last=True, generator=rng)

    s = make_schedule(**cfg["diffusion"])
    net = EpsNet(**cfg["net"])
    ema = deepcopy(net).requires_grad_(False).eval()
    adam = Adam(net.parameters(), lr=hp["lr"], fused=True)
    sched = LinearLR(adam, 1.0, hp["final_lr"], total_iters=hp["epochs"] * len(dl))
    step = 0

    if opt.resume or opt.evaluate:
        state = torch.load(ckpt, weights_only=True)
        for key, part in dict(model=net, ema=ema, adam=adam, sched=sched).items():
            part.load_state_dict(state[key])
        step = state["step"]
        torch.set_rng_state(state["rng_cpu"])
        rng.set_state(state["rng_order"])

    if opt.evaluate:
        track.log(validate(s, ema, x_val), step=step)
        return

    for epoch in range(step // len(dl) + 1, hp["epochs"] + 1):
        for x in dl:
            loss = p_losses(s, net, x)
            loss.backward()
            adam.step()
            adam.zero_grad()
            sched.step()
            step += 1
            update_ema(ema, net, step, hp["ema"])

        if epoch % cfg["val"]["every"] == 0 or epoch == hp["epochs"]:
            print(f"[{epoch:3d}] loss {loss:.3f}")
            track.log(validate(s, ema, x_val), step=step)
            state = dict(
                model=net.state_dict(),
                ema=ema.state_dict(),
                adam=adam.state_dict(),
                sched=sched.state_dict(),
                step=step,
                rng_cpu=torch.get_rng_state(),
                rng_order=rng.get_state(),
            )
            torch.save(state, ckpt)

    samples = p_sample_loop(s, ema, cfg["val"]["num_samples"], torch.Generator().manual_seed(opt.seed))
    np.savetxt(opt.out / "samples.csv", samples * scale + shift, "%.4f", delimiter=",", header="x,y", comments="")


if __name__ == "__main__":
    ap = ArgumentParser()
    ap.add_argument("--data", type=Path, required=True)
    ap.add_argument("--out", type=Path, required=True)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--evaluate", action="store_true")
    main(ap.parse_args())
