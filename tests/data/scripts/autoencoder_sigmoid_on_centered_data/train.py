import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

# 12x12 grey images of two soft blobs, values 0..255
yy, xx = np.mgrid[0:12, 0:12]


def blobs(n):
    out = np.zeros((n, 12, 12))
    for i in range(n):
        for _ in range(2):
            cy, cx, s = rng.uniform(2, 10), rng.uniform(2, 10), rng.uniform(1.5, 2.5)
            out[i] += np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * s * s))
    return (255 * out.clip(0, 1)).astype(np.uint8)


def to_tensor(images):
    x = torch.from_numpy(images).float().div(255)
    x = (x - 0.5) / 0.5
    return x.flatten(1)


class AutoEncoder(nn.Module):
    def __init__(self, dim=144, code=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 96), nn.ReLU(), nn.Linear(96, code))
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.ReLU(), nn.Linear(96, dim), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


train_loader = DataLoader(TensorDataset(to_tensor(blobs(1500))), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(to_tensor(blobs(300))), batch_size=100)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
criterion = nn.MSELoss()

for epoch in range(20):
    model.train()
    train_loss = 0.0
    for (x,) in train_loader:
        recon = model(x)
        loss = criterion(recon, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * x.size(0)
    model.eval()
    with torch.no_grad():
        val_loss = sum(criterion(model(x), x).item() * x.size(0) for (x,) in val_loader) / 300
    print(f"epoch [{epoch + 1}/20] train {train_loss / 1500:.4f} val {val_loss:.4f}")
print(f"validation reconstruction error {val_loss:.4f}")
