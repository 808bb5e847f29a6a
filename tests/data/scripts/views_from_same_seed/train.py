import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

SEED = 7
torch.manual_seed(SEED)


def recordings(n, seed, classes=5, length=40):
    rng = np.random.default_rng(seed)
    shapes = np.random.default_rng(17).normal(size=(classes, length))
    y = rng.integers(0, classes, n)
    gain = rng.uniform(0.4, 1.6, (n, 1))
    drift = rng.normal(0, 2.0, (n, 1)) + rng.normal(0, 2.0, (n, 1)) * np.linspace(-1, 1, length)
    x = gain * shapes[y] + drift + rng.normal(0, 0.4, (n, length))
    return x.astype(np.float32), y


class TwoViewDataset(Dataset):
    def __init__(self, x, seed=SEED):
        self.x = x
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.ramp = np.linspace(-1, 1, x.shape[1])

    def __len__(self):
        return len(self.x)

    def augment(self, x, i):
        rng = np.random.default_rng(self.seed + i)
        x = x * rng.uniform(0.7, 1.3)
        x = x + rng.normal(0, 2.0) + rng.normal(0, 2.0) * self.ramp
        x = x + rng.normal(0, 0.3, x.shape)
        return torch.from_numpy(x.astype(np.float32))

    def __getitem__(self, i):
        return self.augment(self.x[i], i), self.augment(self.x[i], i)


class Encoder(nn.Module):
    def __init__(self, length=40, dim=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(length, 96), nn.ReLU(), nn.Linear(96, 32))
        self.proj = nn.Sequential(nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return F.normalize(self.proj(self.body(x)), dim=1)


def info_nce(a, b, temperature=0.2):
    logits = a @ b.t() / temperature
    target = torch.arange(len(a))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


@torch.no_grad()
def knn_accuracy(model, x_bank, y_bank, x, y, k=5):
    model.eval()
    bank = F.normalize(model.body(torch.from_numpy(x_bank)), dim=1)
    query = F.normalize(model.body(torch.from_numpy(x)), dim=1)
    votes = torch.from_numpy(y_bank)[(query @ bank.t()).topk(k, dim=1).indices]
    return (votes.mode(1).values == torch.from_numpy(y)).float().mean().item()


x_train, y_train = recordings(1000, 1)
x_val, y_val = recordings(400, 2)
loader = DataLoader(TwoViewDataset(x_train), batch_size=100, shuffle=True, drop_last=True)
model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
for epoch in range(15):
    model.train()
    for a, b in loader:
        optimizer.zero_grad()
        loss = info_nce(model(a), model(b))
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
print(f"kNN accuracy on validation recordings {knn_accuracy(model, x_train, y_train, x_val, y_val):.4f}")
