import math

import torch
import torch.nn as nn
from torch.nn.utils import spectral_norm
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)


def moons(n):
    y = torch.randint(0, 2, (n,))
    a = math.pi * torch.rand(n)
    x = torch.stack([a.cos() + y, a.sin() * (1 - 2 * y) + 0.4 * y], 1)
    x = x + 0.08 * torch.randn(n, 2) - torch.tensor([0.5, 0.2])
    return 4 * x, y.float().unsqueeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = spectral_norm(nn.Linear(2, 64))
        self.fc2 = spectral_norm(nn.Linear(64, 64))
        self.fc3 = nn.Linear(64, 1)

    def forward(self, x):
        x = nn.functional.leaky_relu(self.fc1(x), 0.2)
        x = nn.functional.leaky_relu(self.fc2(x), 0.2)
        return self.fc3(x)


train_x, train_y = moons(1000)
test_x, test_y = moons(500)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=50, shuffle=True)
net = Net()

net.eval()
with torch.no_grad():
    spread = net(train_x).std()
    sigma = torch.linalg.matrix_norm(net.fc1.weight, 2)
print(f"untrained: std of the output {spread:.4f}, sigma of the first layer {sigma:.4f}")

optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(15):
    net.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        acc = ((net(test_x) > 0).float() == test_y).float().mean().item()
    print(f"epoch {epoch} loss {total / len(loader):.4f} test acc {acc:.4f}")
