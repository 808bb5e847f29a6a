"""Predict from what is known when an order leaves whether it will be late.

    python orders_table.py --data data --out out --seed 7
    python orders_table.py --data data --out out --resume
    python orders_table.py --data data --out out --evaluate

The orders of val.csv leave after those of train.csv. What the preprocessing has to know (medians, means, the names of
categories) is taken from train.csv and kept in ckpt.pt, so that `serve` predicts from a checkpoint and raw rows alone.
"""

import argparse
import csv
import datetime
import math
import statistics
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import track

TARGET = "late"
NUMBERS = ("distance", "items", "weight", "value")
CATEGORIES = ("carrier", "depot", "service", "weekday")
UNKNOWN = 0
MIN_COUNT = 20  # rarer names count as unknown, which is how the network learns what to make of new ones

EPOCHS = 8
BATCH_SIZE = 64
EMBEDDING = 4
HIDDEN = 48
DROPOUT = 0.1
LR = 3e-3
WEIGHT_DECAY = 1e-2


# --- data -----------------------------------------------------------------------------------------------------------


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(row, name):
    """Return the logarithm of a number, which is skewed, or None if it is missing."""
    return math.log1p(float(row[name])) if row[name] else None


def category(row, name):
    """Return a name, or an empty text if it is missing, which is a category of its own."""
    if name == "weekday":
        return str(datetime.date.fromisoformat(row["date"]).weekday())
    return row[name]


class Preprocessor:
    """Turns rows into tensors: numbers (N, 2 K), standardized and followed by flags of missing ones; categories (N, C).

    medians, means, stds: by column of NUMBERS. names: for each column of CATEGORIES, the known names.
    """

    def __init__(self, medians, means, stds, names):
        self.medians, self.means, self.stds, self.names = medians, means, stds, names
        self.index = {c: {name: i for i, name in enumerate(names[c], start=UNKNOWN + 1)} for c in CATEGORIES}

    @classmethod
    def fit(cls, rows):
        medians, means, stds, names = {}, {}, {}, {}
        for column in NUMBERS:
            values = [number(row, column) for row in rows]
            medians[column] = statistics.median(v for v in values if v is not None)
            filled = [medians[column] if v is None else v for v in values]
            means[column], stds[column] = statistics.fmean(filled), statistics.pstdev(filled)
        for column in CATEGORIES:
            counts = Counter(category(row, column) for row in rows)
            names[column] = sorted(name for name, count in counts.items() if count >= MIN_COUNT)
        return cls(medians, means, stds, names)

    def state_dict(self):
        return {"medians": self.medians, "means": self.means, "stds": self.stds, "names": self.names}

    @property
    def sizes(self):
        """The number of codes of each column of CATEGORIES."""
        return [len(self.names[c]) + 1 for c in CATEGORIES]

    def __call__(self, rows):
        numbers, categories = [], []
        for row in rows:
            values = {c: number(row, c) for c in NUMBERS}
            filled = [self.medians[c] if values[c] is None else values[c] for c in NUMBERS]
            scaled = [(v - self.means[c]) / self.stds[c] for c, v in zip(NUMBERS, filled, strict=True)]
            numbers.append(scaled + [float(values[c] is None) for c in NUMBERS])
            categories.append([self.index[c].get(category(row, c), UNKNOWN) for c in CATEGORIES])
        return torch.tensor(numbers), torch.tensor(categories)


def labels_of(rows):
    return torch.tensor([float(row[TARGET]) for row in rows])


# --- model ----------------------------------------------------------------------------------------------------------


class TableNet(nn.Module):
    """Embeddings of the categories, joined with the numbers, and a perceptron with one output."""

    def __init__(self, sizes):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, EMBEDDING) for size in sizes)
        self.mlp = nn.Sequential(
            nn.Linear(2 * len(NUMBERS) + EMBEDDING * len(sizes), HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, 1),
        )

    def forward(self, numbers, categories):
        """Return logits (N,)."""
        embedded = [embed(codes) for embed, codes in zip(self.embeddings, categories.unbind(dim=1), strict=True)]
        return self.mlp(torch.cat([numbers, *embedded], dim=1)).squeeze(1)


@torch.no_grad()
def serve(ckpt, rows):
    """Return the probability that each raw row will be late."""
    preprocessor = Preprocessor(**ckpt["preprocessor"])
    model = TableNet(preprocessor.sizes)
    model.load_state_dict(ckpt["model"])
    model.eval()
    return model(*preprocessor(rows)).sigmoid()


# --- training -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = correct = count = 0
    for numbers, categories, labels in loader:
        logits = model(numbers, categories)
        loss += F.binary_cross_entropy_with_logits(logits, labels, reduction="sum").item()
        correct += ((logits > 0) == (labels > 0.5)).sum().item()
        count += len(labels)
    return {"val_loss": loss / count, "val_accuracy": correct / count}


def served(ckpt, rows):
    """Return the accuracy of `serve`, which does not see the answers."""
    inputs = [{name: value for name, value in row.items() if name != TARGET} for row in rows]
    correct = (serve(ckpt, inputs) > 0.5) == (labels_of(rows) > 0.5)
    return {"val_accuracy_served": correct.sum().item() / len(rows)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_rows, val_rows = read_rows(args.data / "train.csv"), read_rows(args.data / "val.csv")
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        preprocessor = Preprocessor(**ckpt["preprocessor"])
    else:
        preprocessor = Preprocessor.fit(train_rows)
    model = TableNet(preprocessor.sizes)
    if args.resume or args.evaluate:
        model.load_state_dict(ckpt["model"])
    val_loader = DataLoader(TensorDataset(*preprocessor(val_rows), labels_of(val_rows)), batch_size=256)
    if args.evaluate:
        track.log({**evaluate(model, val_loader), **served(ckpt, val_rows)})
        return

    order = torch.Generator().manual_seed(args.seed)
    train_set = TensorDataset(*preprocessor(train_rows), labels_of(train_rows))
    train_loader = DataLoader(train_set, BATCH_SIZE, shuffle=True, drop_last=True, generator=order)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY, fused=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
    first_epoch = 0
    if args.resume:
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        first_epoch = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(first_epoch, EPOCHS):
        model.train()
        for numbers, categories, labels in train_loader:
            loss = F.binary_cross_entropy_with_logits(model(numbers, categories), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

        ckpt = {"model": model.state_dict(), "preprocessor": preprocessor.state_dict()}
        figures = {**evaluate(model, val_loader), **served(ckpt, val_rows)}
        scheduler.step(figures["val_loss"])
        track.log(figures, step=epoch + 1)
        ckpt |= {
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
        }
        torch.save(ckpt, args.out / "ckpt.pt")


if __name__ == "__main__":
    main()
