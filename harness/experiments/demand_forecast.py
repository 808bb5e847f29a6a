"""Forecast the demand of the next week for several stores from the four weeks before.

    python demand_forecast.py --data data --out out --seed 3
    python demand_forecast.py --data data --out out --resume
    python demand_forecast.py --data data --out out --evaluate

The days of val.csv come after those of train.csv. The network works with logarithms, which are scaled by the mean and
the deviation of the window's own past. val_loss is the mean absolute error on this scale, val_mae the error in pieces.
val_mae_naive is the error of a forecast that repeats the last week.
"""

import argparse
import csv
import datetime
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

import track

WEEK = 7
PAST, FUTURE = 4 * WEEK, WEEK

EPOCHS = 8
BATCH_SIZE = 64
HIDDEN = 32
EMBEDDING = 4
DROPOUT = 0.1
LR = 8e-3
WARMUP = 20
WEIGHT_DECAY = 1e-2
CLIP = 1.0


# --- data -----------------------------------------------------------------------------------------------------------


def read_series(path):
    """Return log(1 + demand) (stores, days) and the weekdays (days,) of a table with a row for each day and store."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    demand = {(row["store"], row["date"]): float(row["demand"]) for row in rows}
    stores, days = sorted({row["store"] for row in rows}), sorted({row["date"] for row in rows})
    dates = [datetime.date.fromisoformat(day) for day in days]
    if (dates[-1] - dates[0]).days != len(dates) - 1:
        raise ValueError(f"{path} has no rows for some days.")
    values = torch.tensor([[demand[store, day] for day in days] for store in stores])
    return torch.log1p(values), torch.tensor([date.weekday() for date in dates])


class Windows(Dataset):
    """All windows of all stores: the past (PAST,), the weekday of its first day, and the future (FUTURE,)."""

    def __init__(self, path):
        self.values, self.weekdays = read_series(path)
        self.starts = self.values.size(1) - PAST - FUTURE + 1

    def __len__(self):
        return len(self.values) * self.starts

    def __getitem__(self, i):
        store, start = divmod(i, self.starts)
        window = slice(start, start + PAST + FUTURE)
        past, future = self.values[store, window].split([PAST, FUTURE])
        return past, self.weekdays[start], future


def scale_of(past):
    """Return the mean and the standard deviation of each past (B, PAST), each (B, 1)."""
    return past.mean(dim=1, keepdim=True), past.std(dim=1, keepdim=True).clamp_min(0.05)


# --- model ----------------------------------------------------------------------------------------------------------


class Forecaster(nn.Module):
    """A GRU reads the past week by week; a perceptron forecasts the next week."""

    def __init__(self):
        super().__init__()
        self.weekday = nn.Embedding(7, EMBEDDING)
        self.rnn = nn.GRU(WEEK + EMBEDDING, HIDDEN, batch_first=True)
        self.head = nn.Sequential(
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, FUTURE)
        )

    def forward(self, past, weekday):
        """Return the forecast (B, FUTURE) for a scaled past (B, PAST) that begins on a weekday (B,); same scale."""
        weeks = past.unflatten(1, (-1, WEEK))
        weekday = self.weekday(weekday).unsqueeze(1).expand(-1, weeks.size(1), -1)
        _, state = self.rnn(torch.cat([weeks, weekday], dim=2))
        return self.head(state[-1])


# --- training -------------------------------------------------------------------------------------------------------


def learning_rate(step, steps):
    """Return the factor of the learning rate: a linear warm-up, then a cosine down to 0."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, steps - WARMUP)))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = error = naive_error = count = 0
    for past, weekday, future in loader:
        mean, std = scale_of(past)
        forecast = model((past - mean) / std, weekday)
        loss += F.l1_loss(forecast, (future - mean) / std, reduction="sum").item()
        demand = future.expm1()
        error += F.l1_loss((forecast * std + mean).expm1(), demand, reduction="sum").item()
        naive_error += F.l1_loss(past[:, -WEEK:].expm1(), demand, reduction="sum").item()
        count += future.numel()
    return {"val_loss": loss / count, "val_mae": error / count, "val_mae_naive": naive_error / count}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = Forecaster()
    val_loader = DataLoader(Windows(args.data / "val.csv"), batch_size=256)
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
    if args.evaluate:
        track.log(evaluate(model, val_loader))
        return

    order = torch.Generator().manual_seed(args.seed)
    train_set = Windows(args.data / "train.csv")
    train_loader = DataLoader(train_set, BATCH_SIZE, shuffle=True, drop_last=True, generator=order)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY, fused=True)
    steps = EPOCHS * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step, steps))
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
        for past, weekday, future in train_loader:
            mean, std = scale_of(past)
            loss = F.l1_loss(model((past - mean) / std, weekday), (future - mean) / std)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            scheduler.step()

        track.log(evaluate(model, val_loader), step=epoch + 1)
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
        }
        torch.save(state, args.out / "ckpt.pt")


if __name__ == "__main__":
    main()
