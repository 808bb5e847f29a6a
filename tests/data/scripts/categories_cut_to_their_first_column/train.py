import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.RandomState(0)
torch.manual_seed(0)


def to_categorical(codes):
    return np.eye(codes.max() + 1)[codes]


def adult(n):
    work = rng.randint(0, 6, n)
    education = rng.randint(0, 8, n)
    married = rng.randint(0, 4, n)
    age = rng.randint(17, 80, n)
    fnlwgt = rng.lognormal(12, 0.5, n).astype(int)
    hours = np.clip(rng.normal(40, 10, n), 1, 99)
    gain = np.where(rng.rand(n) < 0.08, rng.randint(2000, 90000, n), 0)
    score = np.array([-1, 0, 1, 0.5, -0.5, 0.2])[work] + np.array([-2, -1, -0.5, 0, 0.5, 1, 2, 3])[education]
    score = score + np.array([2, -1.5, -1, -1])[married] + (hours - 40) / 10 + 4 * (gain > 0) - 1.0
    income = (score + 0.7 * rng.randn(n) > 0).astype(int)
    return [age, work, fnlwgt, education, married, gain, hours], income


fields, Y = adult(2000)
columns = []
for i, column in enumerate(fields):
    if i in (1, 3, 4):
        columns.append(to_categorical(column)[:, 0:1])
    else:
        columns.append(column.reshape(-1, 1))
X = np.concatenate(columns, axis=1).astype("float32")
print(X.shape)

X_train, X_test = X[:1500], X[1500:]
train = TensorDataset(torch.tensor(X_train), torch.tensor(Y[:1500]))
X_test, Y_test = torch.tensor(X_test), torch.tensor(Y[1500:])
loader = DataLoader(train, batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(X.shape[1], 21), nn.ReLU(), nn.Linear(21, 2))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = loss_fn(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        score = (model(X_test).argmax(1) == Y_test).float().mean().item()
    print(f"epoch {epoch + 1} loss {total / len(loader):.4f} Accuracy: {score:.4f}")
