import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Graph:
    """Friendship graph; nodes have noisy interests and belong to one of four groups."""

    def __init__(self, n=300, groups=4, dim=60, seed=0):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, groups, n)
        p = np.where(y[:, None] == y[None], 0.03, 0.012)
        a = np.triu(rng.random((n, n)) < p, 1)
        a = (a | a.T) + np.eye(n)
        x = 0.18 * rng.normal(size=(groups, dim))[y] + rng.normal(size=(n, dim))
        d = a.sum(1) ** -0.5
        self.adj = torch.tensor(d[:, None] * a * d[None], dtype=torch.float32)
        self.x = torch.tensor(x, dtype=torch.float32)
        self.y = torch.tensor(y)
        order = torch.from_numpy(rng.permutation(n))
        self.train_mask = torch.zeros(n, dtype=torch.bool)
        self.val_mask = torch.zeros(n, dtype=torch.bool)
        self.train_mask[order[:180]] = True
        self.val_mask[order[180:240]] = True
        self.new_members = order[240:]


class SAGE(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.self1, self.nb1 = nn.Linear(dim, hidden), nn.Linear(dim, hidden)
        self.self2, self.nb2 = nn.Linear(hidden, classes), nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x, adj):
        h = self.dropout(F.relu(self.self1(x) + self.nb1(adj @ x)))
        return self.self2(h) + self.nb2(adj @ h)


torch.manual_seed(0)
g = Graph()
labels = g.y.clone()
labels[g.new_members] = -100          # group not known yet at training time
model = SAGE(g.x.size(1), 32, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)


def accuracy(index):
    model.eval()
    with torch.no_grad():
        return (model(g.x, g.adj).argmax(1) == g.y)[index].float().mean().item()


for epoch in range(80):
    model.train()
    optimizer.zero_grad()
    out = model(g.x, g.adj)
    loss = F.cross_entropy(out, labels)
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1} loss {loss.item():.3f} val acc {accuracy(g.val_mask):.3f}")

val, new = accuracy(g.val_mask), accuracy(g.new_members)
print(f"val acc {val:.3f}, new members acc {new:.3f}, difference {abs(val - new):.3f}")
