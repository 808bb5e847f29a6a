"""SimCLR-style contrastive pretraining on vectors, checked by nearest neighbours."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_data(n, seed, classes=8, signal=6, nuisance=26):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, signal, generator=torch.Generator().manual_seed(7)) * 0.9
    mix = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(8)))[0]
    y = torch.randint(0, classes, (n,), generator=g)
    s = centers[y] + 0.4 * torch.randn(n, signal, generator=g)
    return s, y, mix, nuisance


def view(s, mix, nuisance, gen):
    background = 2.5 * torch.randn(len(s), nuisance, generator=gen)
    jitter = s + 0.3 * torch.randn(s.shape, generator=gen)
    return torch.cat([jitter, background], dim=1) @ mix / 2.0


def nt_xent(za, zb, temperature):
    z = F.normalize(torch.cat([za, zb]), dim=1)
    n = len(za)
    sim = z @ z.t() / temperature
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
    return F.cross_entropy(sim, targets)


class Encoder(nn.Module):
    def __init__(self, dim=32, width=96, out=16):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(dim, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 32))
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(32, out))

    def forward(self, x):
        return self.projector(self.trunk(x))


@torch.no_grad()
def knn_accuracy(model, bank, bank_y, query, query_y, k=5):
    model.eval()
    a, b = F.normalize(model(bank), dim=1), F.normalize(model(query), dim=1)
    near = (b @ a.t()).topk(k, dim=1).indices
    votes = F.one_hot(bank_y[near], 8).sum(1)
    return (votes.argmax(1) == query_y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    s, y, mix, nuisance = make_data(2000, 1)
    sv, yv, _, _ = make_data(400, 2)
    bank, query = view(s, mix, nuisance, gen), view(sv, mix, nuisance, gen)

    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    for step in range(args.steps):
        model.train()
        idx = torch.randint(0, len(s), (args.batch,), generator=gen)
        a, b = view(s[idx], mix, nuisance, gen), view(s[idx], mix, nuisance, gen)
        loss = nt_xent(model(a), model(b), args.temperature)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {loss.item():.3f} knn {knn_accuracy(model, bank, y, query, yv):.3f}")
    print(f"5-nearest-neighbour accuracy {knn_accuracy(model, bank, y, query, yv):.3f}")


main()
