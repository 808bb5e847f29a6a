import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LR = 0.05
EPOCHS = 10
torch.manual_seed(1)


def load(n, seed):
    rng = np.random.RandomState(seed)
    basis = np.random.RandomState(3).randn(10, 64)
    y = rng.randint(0, 10, n)
    x = basis[y] * 0.6 + rng.randn(n, 64)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [64, 64, 64, 64, 64]
        self.hidden = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])])
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.out(x)


x_train, y_train = load(1500, 10)
x_test, y_test = load(400, 11)
model = MLP()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
val_acc = []
for epoch in range(EPOCHS):
    model.train()
    losses = []
    for idx in torch.randperm(len(x_train)).split(32):
        loss = F.cross_entropy(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val_acc.append((model(x_test).argmax(1) == y_test).float().mean().item())
    print(f"epoch {epoch} loss {np.mean(losses):.4f} test accuracy {val_acc[-1]:.4f}")
print(f"mean of the last epochs {np.mean(val_acc[-4:]):.4f}")
