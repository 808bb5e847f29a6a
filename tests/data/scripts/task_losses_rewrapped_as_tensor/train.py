import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)


def cars(n):
    """Features of used cars; price (regression), defect (yes or no), segment (four classes)."""
    x = rng.normal(size=(n, 16)).astype(np.float32)
    price = (x[:, 0] - 0.7 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3] + 0.1 * rng.normal(size=n)).astype(np.float32)
    defect = (x[:, 4] + x[:, 5] ** 2 + 0.2 * rng.normal(size=n) > 1).astype(np.float32)
    segment = x[:, 6:10].argmax(1)
    return TensorDataset(*map(torch.from_numpy, (x, price, defect, segment)))


class MultiTaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.price = nn.Linear(64, 1)
        self.defect = nn.Linear(64, 1)
        self.segment = nn.Linear(64, 4)

    def forward(self, x):
        h = self.trunk(x)
        return self.price(h).squeeze(1), self.defect(h).squeeze(1), self.segment(h)


class MultiTaskLoss(nn.Module):
    def __init__(self, weights=(1.0, 1.0, 1.0)):
        super().__init__()
        self.register_buffer("weights", torch.tensor(weights))
        self.mse, self.bce, self.ce = nn.MSELoss(), nn.BCEWithLogitsLoss(), nn.CrossEntropyLoss()

    def forward(self, outputs, price, defect, segment):
        p, d, s = outputs
        losses = [self.mse(p, price), self.bce(d, defect), self.ce(s, segment)]
        losses = torch.tensor(losses, requires_grad=True)
        return (self.weights * losses).sum(), losses.detach()


train_loader = DataLoader(cars(2000), batch_size=50, shuffle=True)
val_loader = DataLoader(cars(500), batch_size=100)
model = MultiTaskNet()
criterion = MultiTaskLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(10):
    model.train()
    parts = torch.zeros(3)
    for x, price, defect, segment in train_loader:
        optimizer.zero_grad()
        loss, each = criterion(model(x), price, defect, segment)
        loss.backward()
        optimizer.step()
        parts += each / len(train_loader)
    print(f"epoch {epoch} price {parts[0]:.3f} defect {parts[1]:.3f} segment {parts[2]:.3f}")

model.eval()
with torch.no_grad():
    hits = sum((model(x)[2].argmax(1) == s).sum().item() for x, _, _, s in val_loader)
print(f"validation accuracy of the segment {hits / 500:.4f}")
