import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
CLASSES = 5


def scenes(n, seed):
    rng = np.random.RandomState(seed)
    parts = np.random.RandomState(3).randn(CLASSES, 4, 4)
    y = np.zeros((n, CLASSES), dtype=np.float32)
    x = 0.4 * rng.randn(n, 1, 12, 12)
    for i in range(n):
        present = rng.choice(CLASSES, rng.randint(1, 4), replace=False)
        y[i, present] = 1
        for cell, k in zip(rng.permutation(9), present):
            r, c = 4 * (cell // 3), 4 * (cell % 3)
            x[i, 0, r : r + 4, c : c + 4] += parts[k]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def concurrent_softmax(vec, y):
    result = []
    for i in range(vec.shape[1]):
        zi = torch.exp(vec[:, i])
        sum_over_j = 0
        for j in range(y.shape[1]):
            sum_over_j = sum_over_j + (1 - y[:, j]) * torch.exp(vec[:, j])
        out = zi / (sum_over_j + zi)
        result.append(out)
    return torch.stack(result, dim=1)


def loss_fn(vec, y):
    p = concurrent_softmax(vec, y).clamp(1e-6, 1 - 1e-6)
    return -(y * p.log() + (1 - y) * (1 - p).log()).sum(1).mean()


model = nn.Sequential(
    nn.Conv2d(1, 24, 4, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48 * 9, CLASSES)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x_train, y_train = scenes(1000, 0)
x_val, y_val = scenes(400, 1)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)


def recall_at_count(scores, y):
    order = scores.argsort(1, descending=True).argsort(1)
    hit = (order < y.sum(1, keepdim=True)).float() * y
    return (hit.sum(1) / y.sum(1)).mean().item()


for epoch in range(6):
    model.train()
    running = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
    print(f"epoch {epoch} loss {running / len(loader):.4f} recall {recall_at_count(scores, y_val):.4f}")
