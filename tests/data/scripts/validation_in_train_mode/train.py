"""Customer churn from a table with numeric and categorical columns."""
import logging
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("churn")


@dataclass
class Config:
    rows: int = 2400
    val_rows: int = 600
    batch_size: int = 40
    epochs: int = 8
    lr: float = 2e-3
    dropout: float = 0.5
    seed: int = 6


def load(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    n = cfg.rows
    num = torch.randn(n, 8, generator=g)
    plan = torch.randint(0, 4, (n,), generator=g)
    region = torch.randint(0, 6, (n,), generator=g)
    effect = torch.tensor([1.5, 0.0, -0.5, -1.5])[plan] + torch.linspace(-0.8, 0.8, 6)[region]
    logit = 3.0 * (num[:, 0] * num[:, 1] + num[:, 2] - 0.7 * num[:, 3] + effect) - 2.5
    y = (torch.rand(n, generator=g) < torch.sigmoid(logit)).float()
    return num * 7 + 30, plan, region, y


class ChurnNet(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.plan = nn.Embedding(4, 4)
        self.region = nn.Embedding(6, 4)
        self.net = nn.Sequential(
            nn.Linear(16, 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(96, 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(96, 1),
        )

    def forward(self, num, plan, region):
        return self.net(torch.cat([num, self.plan(plan), self.region(region)], 1)).squeeze(1)


def train_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for *inputs, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(*inputs), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def evaluate(model, loader):
    right = n = 0
    with torch.no_grad():
        for *inputs, y in loader:
            right += ((model(*inputs) > 0) == (y > 0.5)).sum().item()
            n += len(y)
    return right / n


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    num, plan, region, y = load(cfg)
    cut = cfg.rows - cfg.val_rows
    num = (num - num[:cut].mean(0)) / num[:cut].std(0)
    train_set = TensorDataset(num[:cut], plan[:cut], region[:cut], y[:cut])
    val_set = TensorDataset(num[cut:], plan[cut:], region[cut:], y[cut:])
    share = y[:cut].mean()
    weights = torch.where(y[:cut] > 0.5, 0.5 / share, 0.5 / (1 - share))
    sampler = WeightedRandomSampler(weights, num_samples=cut)
    train_loader = DataLoader(train_set, cfg.batch_size, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=8)
    model = ChurnNet(cfg.dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(cfg.epochs):
        loss = train_epoch(model, train_loader, optimizer, criterion)
        log.info("epoch %d loss %.3f", epoch, loss)
    print(f"validation accuracy {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
