import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def digits(n, seed):
    rng = np.random.RandomState(seed)
    glyphs = np.random.RandomState(29).rand(10, 12, 12) < 0.35
    y = rng.randint(0, 10, n)
    x = glyphs[y] + 0.5 * rng.randn(n, 12, 12)
    return TensorDataset(torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y % 2).float())


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dense = nn.Linear(16 * 9, 64)
        self.dropout = nn.Dropout(0.25)
        self.logits = nn.Linear(64, 1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(F.relu(self.dense(x.flatten(1))))
        return torch.sigmoid(self.logits(x)).squeeze(1)


train_loader = DataLoader(digits(1200, 0), batch_size=32, shuffle=True)
test_loader = DataLoader(digits(400, 1), batch_size=200)
model = LeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    test_err = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            test_err += F.binary_cross_entropy_with_logits(model(x), y, reduction="sum").item()
    print(f"epoch {epoch} loss {total / len(train_loader):.4f} log loss {test_err / 400:.4f}")
