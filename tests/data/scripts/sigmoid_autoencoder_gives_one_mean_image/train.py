import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
lr = 1e-3
weight_decay = 1e-5
encoded_dim = 32


def strokes(n, seed):
    rng = np.random.RandomState(seed)
    rows, cols = np.mgrid[0:20, 0:20]
    images = np.zeros((n, 20, 20), dtype=np.float32)
    for i in range(n):
        r, c = rng.uniform(6, 14, 2)
        radius, angle = rng.uniform(2, 6), rng.uniform(0, np.pi)
        ring = np.exp(-((np.hypot(rows - r, cols - c) - radius) ** 2))
        line = np.exp(-(((rows - r) * np.cos(angle) + (cols - c) * np.sin(angle)) ** 2))
        images[i] = np.clip(ring if rng.rand() < 0.5 else line * (np.hypot(rows - r, cols - c) < 6), 0, 1)
    return torch.tensor(images)


encoder = nn.Sequential(
    nn.Flatten(),
    nn.Linear(20 * 20, 256),
    nn.Sigmoid(),
    nn.Linear(256, 64),
    nn.Sigmoid(),
    nn.Linear(64, encoded_dim),
)
decoder = nn.Sequential(
    nn.Linear(encoded_dim, 64),
    nn.Sigmoid(),
    nn.Linear(64, 256),
    nn.Sigmoid(),
    nn.Linear(256, 20 * 20),
    nn.Sigmoid(),
    nn.Unflatten(1, (20, 20)),
)
autoencoder = nn.Sequential(encoder, decoder)

train_loader = DataLoader(TensorDataset(strokes(1200, 0)), batch_size=64, shuffle=True)
val_images = strokes(400, 1)

loss_fn = nn.BCELoss()
optimizer = torch.optim.Adam(autoencoder.parameters(), lr=lr, weight_decay=weight_decay)
for epoch in range(10):
    autoencoder.train()
    total = 0.0
    for idx, (x,) in enumerate(train_loader):
        x_pred = autoencoder(x)
        loss = loss_fn(x_pred, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    autoencoder.eval()
    with torch.no_grad():
        val_loss = loss_fn(autoencoder(val_images), val_images).item()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} val loss {val_loss:.4f}")
