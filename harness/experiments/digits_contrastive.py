"""Learn features of digits without labels, with NT-Xent between two views of each picture (SimCLR, Chen et al., 2020).

    python digits_contrastive.py --data data --out out --seed 5
    python digits_contrastive.py --data data --out out --resume
    python digits_contrastive.py --data data --out out --evaluate

train.npz and val.npz have `inputs`, grey pictures as uint8 (N, 1, 28, 28), and `labels`, int64 (N,). The network never
sees the labels. They only test its features: val_accuracy is the accuracy of nearest neighbours among a few labelled
pictures. val_retrieval is how often the nearest of all other views is the other view of the same picture. Both are
measured on random views, where the pixels themselves give 0.66 and 0.06.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import track

CONFIG = {
    "hidden": 256,
    "features": 64,
    "projection": 32,
    "temperature": 0.2,
    "batch_size": 128,
    "epochs": 16,
    "warmup_epochs": 2,
    "lr": 0.2,
    "weight_decay": 1e-4,
    "eval_every": 4,
    "labelled_per_class": 20,
    "neighbours": 5,
}


# --- data -----------------------------------------------------------------------------------------------------------


def load_split(file):
    """Return pictures of half the resolution, which still shows all strokes, and their labels."""
    with np.load(file) as data:
        images, labels = torch.from_numpy(data["inputs"]), torch.from_numpy(data["labels"])
    return TensorDataset(F.avg_pool2d(images.float() / 255, 2), labels)


def first_of_each_class(dataset, count):
    """Return the first pictures of each class, and their labels."""
    images, labels = dataset.tensors
    index = torch.cat([(labels == label).nonzero().flatten()[:count] for label in labels.unique()])
    return images[index], labels[index]


def random_view(x, generator=None):
    """Turn, stretch, shear and shift each picture (B, 1, H, W) at random, dim it, and add noise."""
    n = len(x)

    def uniform(low, high, *shape):
        return low + (high - low) * torch.rand(n, *shape, generator=generator)

    angle = uniform(-0.35, 0.35)
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([cos, -sin, sin, cos], dim=1).view(n, 2, 2)
    stretch = torch.diag_embed(uniform(0.85, 1.25, 2))
    shear = torch.eye(2).repeat(n, 1, 1)
    shear[:, 0, 1] = uniform(-0.25, 0.25)
    theta = torch.cat([turn @ stretch @ shear, uniform(-0.15, 0.15, 2, 1)], dim=2)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    x = F.grid_sample(x, grid, align_corners=False) * uniform(0.6, 1.0, 1, 1, 1)
    return x + 0.1 * torch.randn(x.shape, generator=generator)


# --- model ----------------------------------------------------------------------------------------------------------


class SimCLR(nn.Module):
    """An encoder, whose features are used later, and a projection head, which only the loss sees."""

    def __init__(self, hidden, features, projection, pixels=14 * 14):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(pixels, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, features),
        )
        self.head = nn.Sequential(
            nn.BatchNorm1d(features),
            nn.ReLU(),
            nn.Linear(features, features),
            nn.ReLU(),
            nn.Linear(features, projection),
        )

    def forward(self, x):
        return self.head(self.encoder(x))


def nt_xent(z1, z2, temperature):
    """Return the mean loss of finding each view's partner among all other views of the batch. z1, z2: (B, D)."""
    n = len(z1)
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    similarity = z @ z.T / temperature
    itself = torch.eye(2 * n, dtype=torch.bool, device=z.device)
    similarity = similarity.masked_fill(itself, float("-inf"))
    partner = torch.arange(2 * n, device=z.device).roll(n)
    return F.cross_entropy(similarity, partner)


# --- evaluation -----------------------------------------------------------------------------------------------------


def retrieval(z1, z2):
    """Return the share of views whose nearest other view by cosine is their partner."""
    n = len(z1)
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    nearest = (z @ z.T).fill_diagonal_(float("-inf")).argmax(dim=1)
    return (nearest == torch.arange(2 * n).roll(n)).float().mean().item()


def knn_predict(features, labels, queries, k):
    """Return the most common label among the k nearest features by cosine; in a tie, the lowest."""
    similarity = F.normalize(queries, dim=1) @ F.normalize(features, dim=1).T
    votes = F.one_hot(labels[similarity.topk(k, dim=1).indices], int(labels.max()) + 1).sum(dim=1)
    return votes.argmax(dim=1)


@torch.no_grad()
def evaluate(model, labelled, val_set, config, seed=0):
    """Return the loss and the two scores of the features, over the whole split as one batch; the views never change."""
    model.eval()
    images, labels = val_set.tensors
    g = torch.Generator().manual_seed(seed)
    first, second = random_view(images, g), random_view(images, g)
    z1, z2 = model(first), model(second)
    known, known_labels = labelled
    predicted = knn_predict(model.encoder(known), known_labels, model.encoder(first), config["neighbours"])
    return {
        "val_loss": nt_xent(z1, z2, config["temperature"]).item(),
        "val_retrieval": retrieval(z1, z2),
        "val_accuracy": (predicted == labels).float().mean().item(),
    }


# --- training -------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    c = CONFIG

    torch.manual_seed(args.seed)
    train_set, val_set = load_split(args.data / "train.npz"), load_split(args.data / "val.npz")
    labelled = first_of_each_class(train_set, c["labelled_per_class"])
    model = SimCLR(c["hidden"], c["features"], c["projection"])
    if args.evaluate:
        model.load_state_dict(torch.load(args.out / "ckpt.pt", weights_only=True)["model"])
        track.log(evaluate(model, labelled, val_set, c))
        return

    order = torch.Generator().manual_seed(args.seed)
    loader = DataLoader(train_set, c["batch_size"], shuffle=True, drop_last=True, generator=order)
    optimizer = torch.optim.SGD(
        model.parameters(), c["lr"], momentum=0.9, nesterov=True, weight_decay=c["weight_decay"], fused=True
    )
    warmup, steps = c["warmup_epochs"] * len(loader), c["epochs"] * len(loader)

    def rate(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    start = 0
    if args.resume:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        start = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(start, c["epochs"]):
        model.train()
        for x, _ in loader:
            z1, z2 = model(torch.cat([random_view(x), random_view(x)])).chunk(2)
            loss = nt_xent(z1, z2, c["temperature"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()

        if (epoch + 1) % c["eval_every"] == 0 or epoch + 1 == c["epochs"]:
            track.log(evaluate(model, labelled, val_set, c), step=(epoch + 1) * len(loader))
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "order": order.get_state(),
                "rng": torch.get_rng_state(),
                "epoch": epoch + 1,
                "config": c,
            }
            torch.save(state, args.out / "ckpt.pt")


if __name__ == "__main__":
    main()
