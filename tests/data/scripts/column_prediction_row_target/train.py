import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader, random_split


class Houses(Dataset):
    """Area, rooms, age, distance and noise columns; target is the log price."""

    def __init__(self, n=1500, seed=0):
        rng = np.random.default_rng(seed)
        area = rng.uniform(30, 200, n)
        rooms = (area / 30 + rng.normal(0, 0.7, n)).round().clip(1)
        age = rng.uniform(0, 80, n)
        dist = rng.exponential(8, n)
        extra = rng.normal(size=(n, 3))
        price = 2500 * area ** 0.9 * np.exp(-0.004 * age - 0.03 * dist + rng.normal(0, 0.08, n)) + 3000 * rooms
        self.x = np.column_stack([area, rooms, age, dist, extra])
        self.y = np.log(price)

    def standardize(self, idx):
        mx, sx = self.x[idx].mean(0), self.x[idx].std(0)
        my, sy = self.y[idx].mean(), self.y[idx].std()
        self.x = ((self.x - mx) / sx).astype(np.float32)
        self.y = ((self.y - my) / sy).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
data = Houses()
train_set, val_set = random_split(data, [1200, 300])
data.standardize(train_set.indices)
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)

model = nn.Sequential(nn.Linear(7, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def r2(loader):
    model.eval()
    preds, ys = [], []
    with torch.no_grad():
        for x, y in loader:
            preds.append(model(x).flatten())
            ys.append(y)
    preds, ys = torch.cat(preds), torch.cat(ys)
    return 1 - ((preds - ys) ** 2).sum().item() / ((ys - ys.mean()) ** 2).sum().item()


for epoch in range(15):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        pred = model(x)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} val R2 {r2(val_loader):.4f}")
print(f"final val R2 {r2(val_loader):.4f}")
