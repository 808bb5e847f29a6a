import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)


def faces(n, seed, size=16):
    rng = np.random.RandomState(seed)
    rows, cols = np.mgrid[0:size, 0:size]
    images = np.zeros((n, size * size), dtype=np.float32)
    points = rng.uniform(4, size - 5, (n, 2))
    gap = rng.uniform(2, 4, n)
    keypoints = np.stack([points[:, 0], points[:, 1] - gap, points[:, 0], points[:, 1] + gap], axis=1)
    for i in range(n):
        image = 0.1 * rng.rand(size, size)
        for r, c in keypoints[i].reshape(2, 2):
            image += np.exp(-((rows - r) ** 2 + (cols - c) ** 2) / 4)
        images[i] = image.ravel()
    keypoints = (keypoints - size / 2) / (size / 2)
    return torch.tensor(images), torch.tensor(keypoints, dtype=torch.float32)


X, y = faces(1000, 0)
X_test, y_test = faces(200, 1)
model = nn.Sequential(nn.Linear(256, 100), nn.ReLU(), nn.Linear(100, 4))
optimizer = optim.Adam(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
loader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True)

for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        error = criterion(model(X_test), y_test).item()
    share = error / y_test.var(0, unbiased=False).mean().item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} loss {total / len(loader):.5f} share of variance {share:.4f}")
