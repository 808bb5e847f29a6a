"""Card fraud detection on a table with few positives."""
import torch
import torch.nn as nn

torch.manual_seed(5)


def make_table(n=4000, d=24, rate=0.04):
    y = (torch.rand(n) < rate).long()
    x = torch.randn(n, d)
    direction = torch.randn(d) / d**0.5
    x = x + y[:, None] * 2.6 * direction * (0.5 + torch.rand(n, 1))
    x[:, 0] = x[:, 0].exp()
    return x, y


def oversample(x, y):
    pos = (y == 1).nonzero().flatten()
    times = int((y == 0).sum() / len(pos))
    idx = torch.cat([(y == 0).nonzero().flatten(), pos.repeat(times)])
    return x[idx], y[idx]


def split(x, y, frac=0.75):
    order = torch.randperm(len(x))
    k = int(frac * len(x))
    return x[order[:k]], y[order[:k]], x[order[k:]], y[order[k:]]


def balanced_accuracy(pred, y):
    tpr = (pred[y == 1] == 1).float().mean()
    tnr = (pred[y == 0] == 0).float().mean()
    return ((tpr + tnr) / 2).item()


x, y = make_table()
x, y = oversample(x, y)
x_train, y_train, x_val, y_val = split(x, y)

mean, std = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std

model = nn.Sequential(
    nn.Linear(24, 96),
    nn.ReLU(),
    nn.Linear(96, 96),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(96, 2),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
criterion = nn.CrossEntropyLoss()
batch = 128

for epoch in range(9):
    model.train()
    order = torch.randperm(len(x_train))
    total = 0.0
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        pred = model(x_val).argmax(1)
    score = balanced_accuracy(pred, y_val)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  loss {total / len(order):.4f}  balanced acc {score:.3f}")

print("final balanced accuracy on validation:", round(score, 3))
