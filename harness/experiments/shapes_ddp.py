"""Train a small CNN on pictures of figures with data parallelism.

    torchrun --nproc_per_node=2 shapes_ddp.py --data data --out out --seed 0
    torchrun --nproc_per_node=2 shapes_ddp.py --data data --out out --resume
    python shapes_ddp.py --data data --out out --evaluate

Each process takes its share of every epoch and of the validation images, and process 0 writes the log and ckpt.pt.
Started without torchrun, the script trains in one process.
"""

import argparse
import math
import os
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

import track

EPOCHS = 5
BATCH_SIZE = 16  # for each process
ACCUMULATE = 2  # batches for an update
LR = 0.08
WARMUP = 8  # updates
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
CLIP = 2.0


# --- data -----------------------------------------------------------------------------------------------------------


class Figures(Dataset):
    """Colour images (3, 32, 32), standardized by channel, and their labels. Half of the images are mirrored."""

    def __init__(self, path, mean=None, std=None, mirror=False):
        with np.load(path) as data:
            self.images = torch.from_numpy(data["inputs"]).float()
            self.labels = torch.from_numpy(data["labels"]).long()
        self.mean = self.images.mean(dim=(0, 2, 3)) if mean is None else mean
        self.std = self.images.std(dim=(0, 2, 3)) if std is None else std
        self.mirror = mirror

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = (self.images[i] - self.mean[:, None, None]) / self.std[:, None, None]
        if self.mirror and torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x, self.labels[i]


# --- model ----------------------------------------------------------------------------------------------------------


class ConvBlock(nn.Sequential):
    def __init__(self, channels, out_channels):
        super().__init__(
            nn.Conv2d(channels, out_channels, 3, stride=2, padding=1, bias=False),
            nn.GroupNorm(4, out_channels),
            nn.ReLU(),
        )


class Net(nn.Module):
    def __init__(self, widths=(16, 24, 48), dropout=0.3, classes=10):
        super().__init__()
        self.features = nn.Sequential(*(ConvBlock(*pair) for pair in pairwise((3, *widths))))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1] * 16, classes)

    def forward(self, x):
        return self.head(self.dropout(self.features(x).flatten(1)))


# --- training -------------------------------------------------------------------------------------------------------


def lr_factor(step, total):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (total - WARMUP)))


def average(total, count):
    """Return the mean over all processes of a sum over `count` examples."""
    sums = torch.tensor([*total, count], dtype=torch.float64)
    dist.all_reduce(sums)
    return [(value / sums[-1]).item() for value in sums[:-1]]


def train_one_epoch(model, loader, optimizer, scheduler):
    model.train()
    total = count = 0
    for i, (x, y) in enumerate(loader):
        is_last = (i + 1) % ACCUMULATE == 0
        # Gradients are averaged over the processes once for each update.
        with nullcontext() if is_last else model.no_sync():
            loss = F.cross_entropy(model(x), y)
            (loss / ACCUMULATE).backward()
        if is_last:
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
        total += loss.item() * len(y)
        count += len(y)
    return average([total], count)[0]


@torch.no_grad()
def evaluate(model, loader):
    """Return loss and accuracy over the whole split, of which the loader of each process has a share."""
    model.eval()
    loss = correct = count = 0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=1) == y).sum().item()
        count += len(y)
    loss, accuracy = average([loss, correct], count)
    return {"val_loss": loss, "val_accuracy": accuracy}


def gather_rng_states():
    """Return the state of the random numbers of every process."""
    state = torch.get_rng_state()
    states = [torch.empty_like(state) for _ in range(dist.get_world_size())]
    dist.all_gather(states, state)
    return states


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29501")
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(args.seed)
    train_data = Figures(args.data / "train.npz", mirror=True)
    val_data = Figures(args.data / "val.npz", train_data.mean, train_data.std)
    val_loader = DataLoader(Subset(val_data, range(rank, len(val_data), world_size)), batch_size=128)
    net = Net()
    if args.evaluate:
        net.load_state_dict(torch.load(args.out / "ckpt.pt", weights_only=True)["model"])
        figures = evaluate(net, val_loader)
        if rank == 0:
            track.log(figures)
        dist.destroy_process_group()
        return

    sampler = DistributedSampler(train_data, world_size, rank, seed=args.seed, drop_last=True)
    train_loader = DataLoader(train_data, BATCH_SIZE, sampler=sampler, drop_last=True)
    model = DDP(net)
    optimizer = torch.optim.SGD(
        net.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True, fused=True
    )
    updates = EPOCHS * (len(train_loader) // ACCUMULATE)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: lr_factor(step, updates))
    torch.manual_seed(args.seed + 1000 * (rank + 1))  # dropout and mirroring differ between the processes
    first_epoch = 0
    if args.resume:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        net.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        torch.set_rng_state(ckpt["rng"][rank])
        first_epoch = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(first_epoch, EPOCHS):
        sampler.set_epoch(epoch)
        train_loss = train_one_epoch(model, train_loader, optimizer, scheduler)
        figures = evaluate(net, val_loader)
        state = {
            "model": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": gather_rng_states(),
            "epoch": epoch + 1,
        }
        if rank == 0:
            track.log({"train_loss": train_loss, **figures}, step=epoch + 1)
            torch.save(state, args.out / "ckpt.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
