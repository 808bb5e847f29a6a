"""Seven-day demand forecasts for a group of stores with one global GRU.

The network sees log1p(demand), normalized by the mean and std of each context window (RevIN without the affine part,
Kim et al., 2022). Metrics on val.csv, whose days come after those of train.csv:

    val_loss        MAE in normalized log space, the training objective
    val_mae         MAE in pieces
    val_mae_naive   MAE in pieces of the seasonal naive forecast, for comparison
"""

import argparse
import csv
import math
from collections import defaultdict
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

import track


@dataclass(frozen=True)
class Config:
    context_length: int = 28
    prediction_length: int = 7
    season: int = 7
    hidden_size: int = 32
    embedding_dim: int = 4
    dropout: float = 0.1
    batch_size: int = 64
    max_epochs: int = 8
    learning_rate: float = 8e-3
    warmup_steps: int = 20
    weight_decay: float = 1e-2
    gradient_clip: float = 1.0


def parse_args():
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.csv and val.csv")
    parser.add_argument("--out", type=Path, required=True, help="folder of ckpt.pt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="continue from ckpt.pt")
    parser.add_argument("--evaluate", action="store_true", help="only compute the metrics of ckpt.pt")
    for field in fields(Config):
        parser.add_argument(f"--{field.name}", type=field.type, default=field.default)
    args = parser.parse_args()
    return args, Config(**{field.name: getattr(args, field.name) for field in fields(Config)})


class WindowDataset(Dataset):
    """Every window of every store, at stride 1. Rows of the file: date, store, demand."""

    def __init__(self, csv_file, cfg):
        self.context_length = cfg.context_length
        self.window = cfg.context_length + cfg.prediction_length
        by_store = defaultdict(dict)
        with csv_file.open(newline="") as f:
            for row in csv.DictReader(f):
                by_store[row["store"]][date.fromisoformat(row["date"])] = float(row["demand"])
        days = sorted(set().union(*by_store.values()))
        assert (days[-1] - days[0]).days + 1 == len(days), f"{csv_file} has gaps"
        self.target = torch.tensor([[by_store[store][day] for day in days] for store in sorted(by_store)]).log1p()
        self.weekday = torch.tensor([day.weekday() for day in days])
        self.windows_per_store = len(days) - self.window + 1

    def __len__(self):
        return self.target.size(0) * self.windows_per_store

    def __getitem__(self, idx):
        store, start = idx // self.windows_per_store, idx % self.windows_per_store
        target = self.target[store, start : start + self.window]
        return {
            "past_target": target[: self.context_length],
            "start_weekday": self.weekday[start],
            "future_target": target[self.context_length :],
        }


class GRUForecaster(nn.Module):
    """Reads the context in steps of one season and emits the whole horizon at once."""

    def __init__(self, cfg):
        super().__init__()
        self.season = cfg.season
        self.weekday = nn.Embedding(7, cfg.embedding_dim)
        self.rnn = nn.GRU(cfg.season + cfg.embedding_dim, cfg.hidden_size, batch_first=True)
        self.head = nn.Sequential(
            nn.Linear(cfg.hidden_size, cfg.hidden_size),
            nn.ReLU(),
            nn.Dropout(cfg.dropout),
            nn.Linear(cfg.hidden_size, cfg.prediction_length),
        )

    def forward(self, past, start_weekday):
        B, T = past.shape
        x = past.view(B, T // self.season, self.season)
        # all steps begin on the same weekday, because a season is a week
        emb = self.weekday(start_weekday)[:, None, :].expand(B, x.size(1), -1)
        _, h_n = self.rnn(torch.cat((x, emb), dim=-1))
        return self.head(h_n[-1])  # (B, prediction_length), normalized


def normalizer(past_target, min_scale=0.05):
    loc = past_target.mean(dim=1, keepdim=True)
    scale = past_target.std(dim=1, keepdim=True).clamp(min=min_scale)
    return loc, scale


def train_epoch(model, loader, optimizer, scheduler, cfg):
    model.train()
    total = 0.0
    for batch in loader:
        loc, scale = normalizer(batch["past_target"])
        prediction = model((batch["past_target"] - loc) / scale, batch["start_weekday"])
        loss = F.l1_loss(prediction, (batch["future_target"] - loc) / scale)

        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.gradient_clip)
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def compute_metrics(model, loader, cfg):
    model.eval()
    sums, n = defaultdict(float), 0
    for batch in loader:
        past, future = batch["past_target"], batch["future_target"]
        loc, scale = normalizer(past)
        prediction = model((past - loc) / scale, batch["start_weekday"])
        seasonal_naive = past[:, -cfg.season :]

        pieces = future.expm1()
        sums["val_loss"] += (prediction - (future - loc) / scale).abs().sum().item()
        sums["val_mae"] += ((prediction * scale + loc).expm1() - pieces).abs().sum().item()
        sums["val_mae_naive"] += (seasonal_naive.expm1() - pieces).abs().sum().item()
        n += future.numel()
    return {name: value / n for name, value in sums.items()}


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))


def save_checkpoint(file, epoch, shuffle_rng, **parts):
    ckpt = {name: part.state_dict() for name, part in parts.items()}
    ckpt.update(epoch=epoch, rng_state=torch.get_rng_state(), shuffle_rng_state=shuffle_rng.get_state())
    torch.save(ckpt, file)


def load_checkpoint(file, shuffle_rng, **parts):
    """Restores everything that save_checkpoint wrote, and returns the number of finished epochs."""
    ckpt = torch.load(file, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(ckpt[name])
    torch.set_rng_state(ckpt["rng_state"])
    shuffle_rng.set_state(ckpt["shuffle_rng_state"])
    return ckpt["epoch"]


def main():
    args, cfg = parse_args()
    ckpt_file = args.out / "ckpt.pt"
    torch.manual_seed(args.seed)
    model = GRUForecaster(cfg)
    val_loader = DataLoader(WindowDataset(args.data / "val.csv", cfg), batch_size=256)

    if args.evaluate:
        model.load_state_dict(torch.load(ckpt_file, weights_only=True)["model"])
        track.log(compute_metrics(model, val_loader, cfg))
        return

    shuffle_rng = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(
        WindowDataset(args.data / "train.csv", cfg),
        batch_size=cfg.batch_size,
        shuffle=True,
        drop_last=True,
        generator=shuffle_rng,
    )
    total_steps = cfg.max_epochs * len(train_loader)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=cfg.learning_rate, weight_decay=cfg.weight_decay, fused=True
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_cosine(step, cfg.warmup_steps, total_steps)
    )
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    epoch = load_checkpoint(ckpt_file, shuffle_rng, **parts) if args.resume else 0

    args.out.mkdir(parents=True, exist_ok=True)
    while epoch < cfg.max_epochs:
        train_loss = train_epoch(model, train_loader, optimizer, scheduler, cfg)
        epoch += 1
        metrics = compute_metrics(model, val_loader, cfg)
        print(f"epoch {epoch}/{cfg.max_epochs}: train_loss {train_loss:.3f}, val_loss {metrics['val_loss']:.3f}")
        track.log(metrics, step=epoch)
        save_checkpoint(ckpt_file, epoch, shuffle_rng, **parts)


if __name__ == "__main__":
    main()
