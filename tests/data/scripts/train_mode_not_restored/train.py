import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 32
EPOCHS = 25
rng = np.random.default_rng(14)
torch.manual_seed(14)


def genes(n):
    """Few informative and many useless expression levels."""
    y = rng.integers(0, 3, n)
    centers = np.random.default_rng(5).normal(0, 0.65, (3, 15))
    x = rng.normal(size=(n, 120))
    x[:, :15] += centers[y]
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop_in = nn.Dropout(0.3)
        self.fc1 = nn.Linear(120, 128)
        self.fc2 = nn.Linear(128, 64)
        self.out = nn.Linear(64, 3)
        self.drop = nn.Dropout(0.6)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(self.drop_in(x))))
        x = self.drop(F.relu(self.fc2(x)))
        return self.out(x)


def evaluate(net, loader):
    net.eval()
    loss = correct = 0
    with torch.no_grad():
        for x, y in loader:
            logits = net(x)
            loss += F.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(1) == y).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


train_loader = DataLoader(genes(300), batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(genes(600), batch_size=200)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

net.train()
for epoch in range(EPOCHS):
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(y)
    val_loss, val_acc = evaluate(net, val_loader)
    if epoch % 4 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch} train {running / 300:.3f} val acc {val_acc:.3f} val loss {val_loss:.4f}")
