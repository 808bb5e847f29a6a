import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
N_ROWS, N_ADS, N_USERS = 8000, 2500, 1800


def make_log(rng):
    ad = rng.integers(0, N_ADS, N_ROWS)
    user = rng.integers(0, N_USERS, N_ROWS)
    ctx = rng.normal(size=(N_ROWS, 6))
    ad_quality = rng.normal(size=N_ADS) * 0.5
    logit = ad_quality[ad] + ctx[:, 0] - 0.8 * ctx[:, 1] * ctx[:, 2] - 0.3
    click = (rng.random(N_ROWS) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return ad, user, ctx.astype(np.float32), click


def smoothed_rate(ids, clicks, n, prior, weight=2.0):
    total = np.bincount(ids, weights=clicks, minlength=n)
    count = np.bincount(ids, minlength=n)
    return (total + weight * prior) / (count + weight)


def add_rates(ad, user, click, train_rows):
    prior = click.mean()
    ad_rate = smoothed_rate(ad, click, N_ADS, prior)[ad]
    user_rate = smoothed_rate(user, click, N_USERS, prior)[user]
    return np.stack([ad_rate, user_rate], axis=1)


def auc(score, label):
    rank = score.argsort().argsort().double() + 1
    pos = label > 0.5
    n1, n0 = pos.sum().item(), (~pos).sum().item()
    return ((rank[pos].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)).item()


class ClickNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc1 = nn.Linear(d, 64)
        self.fc2 = nn.Linear(64, 32)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(x)))
        x = F.relu(self.fc2(x))
        return self.out(x).squeeze(1)


def main():
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    ad, user, ctx, click = make_log(rng)
    order = rng.permutation(N_ROWS)
    train_rows, val_rows = order[:6000], order[6000:]

    rates = add_rates(ad, user, click, train_rows)
    x = np.concatenate([ctx, rates], axis=1).astype(np.float32)
    mu, sd = x[train_rows].mean(0), x[train_rows].std(0)
    x = torch.from_numpy((x - mu) / sd)
    y = torch.from_numpy(click)
    xt, yt, xv, yv = x[train_rows], y[train_rows], x[val_rows], y[val_rows]

    net = ClickNet(x.shape[1])
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(6):
        net.train()
        for idx in torch.randperm(len(xt)).split(100):
            loss = F.binary_cross_entropy_with_logits(net(xt[idx]), yt[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            score = net(xv)
            vl = F.binary_cross_entropy_with_logits(score, yv).item()
        print(f"{epoch}: train {loss.item():.3f}  val logloss {vl:.3f}")
    print(f"val AUC = {auc(score, yv):.3f}")


main()
