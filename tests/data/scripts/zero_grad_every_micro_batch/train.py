"""Denoise small pictures; bf16 autocast and gradient accumulation."""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def pictures(n, seed, side=16):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angle = torch.rand(n, 1, 1, generator=g) * 3.1416
    freq = 0.4 + torch.rand(n, 1, 1, generator=g) * 0.5
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    clean = torch.sin(freq * (torch.cos(angle) * xx + torch.sin(angle) * yy) + phase).unsqueeze(1)
    noisy = clean + 0.6 * torch.randn(clean.shape, generator=g)
    return TensorDataset(noisy, clean)


class Denoiser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x):
        return x - self.body(x)


@torch.no_grad()
def psnr(model, loader):
    model.eval()
    mse = n = 0.0
    for noisy, clean in loader:
        mse += (model(noisy) - clean).pow(2).mean((1, 2, 3)).sum().item()
        n += len(noisy)
    return 10 * torch.log10(torch.tensor(4.0 * n / mse)).item()


def train(args):
    torch.manual_seed(args.seed)
    train_loader = DataLoader(pictures(1024, 0), batch_size=args.micro_batch, shuffle=True, drop_last=True)
    val_loader = DataLoader(pictures(100, 1), batch_size=100)
    model = Denoiser()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    updates = 0
    for epoch in range(args.epochs):
        model.train()
        for i, (noisy, clean) in enumerate(train_loader):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                restored = model(noisy)
            loss = nn.functional.mse_loss(restored.float(), clean) / args.accumulate
            loss.backward()
            if (i + 1) % args.accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                updates += 1
        print(f"epoch {epoch} loss {loss.item() * args.accumulate:.4f} psnr {psnr(model, val_loader):.2f}")
    print(f"{updates} updates, validation PSNR {psnr(model, val_loader):.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--micro-batch", type=int, default=8)
    p.add_argument("--accumulate", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=0)
    train(p.parse_args())
