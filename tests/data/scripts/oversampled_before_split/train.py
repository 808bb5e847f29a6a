import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset, DataLoader

torch.manual_seed(3)
rng = np.random.default_rng(3)


def customers(n):
    x = rng.normal(size=(n, 12)).astype(np.float32)
    score = 1.3 * x[:, 0] - 1.0 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3] + rng.normal(0, 1.0, n)
    y = (score > 2.6).astype(np.int64)
    return x, y


def oversample(x, y):
    pos, neg = np.where(y == 1)[0], np.where(y == 0)[0]
    extra = rng.choice(pos, len(neg), replace=True)
    idx = np.concatenate([neg, extra])
    rng.shuffle(idx)
    return x[idx], y[idx]


def split(x, y, fraction=0.25):
    order = rng.permutation(len(x))
    cut = int(len(x) * fraction)
    return x[order[cut:]], y[order[cut:]], x[order[:cut]], y[order[:cut]]


def f1(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(torch.from_numpy(x)).argmax(1).numpy()
    tp = ((pred == 1) & (y == 1)).sum()
    return 2 * tp / max((pred == 1).sum() + (y == 1).sum(), 1)


x, y = customers(3000)
x_next, y_next = customers(3000)     # customers of the following month
print("share of churn", y.mean().round(3))

x, y = oversample(x, y)
x_train, y_train, x_val, y_val = split(x, y)
loader = DataLoader(TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train)), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(15):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} val f1 {f1(model, x_val, y_val):.3f}")

val_f1, next_f1 = f1(model, x_val, y_val), f1(model, x_next, y_next)
print(f"val f1 {val_f1:.3f}, following month f1 {next_f1:.3f}, difference {abs(val_f1 - next_f1):.3f}")
