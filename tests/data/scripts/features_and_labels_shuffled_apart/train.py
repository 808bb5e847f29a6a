# Soil type from laboratory measurements (10 columns, 5 types).
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(42)
torch.manual_seed(42)

N, D, K = 2400, 10, 5
centers = rng.normal(0, 1.4, (K, D))
types = rng.integers(0, K, N)
table = centers[types] + rng.normal(0, 1.0, (N, D))
table = table * rng.uniform(0.5, 20, D) + rng.uniform(-5, 50, D)


def shuffled(*arrays):
    return [a[rng.permutation(len(a))] for a in arrays]


def batches(x, y, size):
    for i in range(0, len(x) - size + 1, size):
        yield x[i : i + size], y[i : i + size]


n_val = N // 5
x_val, y_val = table[:n_val], types[:n_val]
x_train, y_train = table[n_val:], types[n_val:]
mu, sigma = x_train.mean(axis=0), x_train.std(axis=0)
x_train = torch.tensor((x_train - mu) / sigma, dtype=torch.float32)
x_val = torch.tensor((x_val - mu) / sigma, dtype=torch.float32)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)

net = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, K))
opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
ce = nn.CrossEntropyLoss()

for epoch in range(1, 11):
    net.train()
    losses = []
    for xb, yb in batches(*shuffled(x_train, y_train), 64):
        opt.zero_grad()
        loss = ce(net(xb), yb)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        acc = (net(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch:2d}   loss {np.mean(losses):.4f}   val acc {acc:.3f}")

print(f"val acc {acc:.3f}")
