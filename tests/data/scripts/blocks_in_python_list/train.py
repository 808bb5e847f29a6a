import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
rng = np.random.default_rng(2)


def citation_graph(n=400, classes=5, features=40):
    y = rng.integers(0, classes, n)
    same = y[:, None] == y[None, :]
    prob = np.where(same, 0.04, 0.006)
    upper = np.triu(rng.random((n, n)) < prob, 1)
    adj = (upper | upper.T).astype(np.float32)
    centers = rng.normal(0, 1, (classes, features))
    x = 0.22 * centers[y] + rng.normal(0, 1, (n, features))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(adj), torch.tensor(y)


class GraphConv(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.lin = nn.Linear(fan_in, fan_out)

    def forward(self, x, a):
        return a @ self.lin(x)


class GCN(nn.Module):
    def __init__(self, in_dim, hidden, classes, depth=3):
        super().__init__()
        dims = [in_dim] + [hidden] * (depth - 1)
        self.convs = [GraphConv(a, b) for a, b in zip(dims[:-1], dims[1:])]
        self.out = GraphConv(hidden, classes)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, a):
        for conv in self.convs:
            x = self.drop(F.relu(conv(x, a)))
        return self.out(x, a)


x, adj, y = citation_graph()
a = adj + torch.eye(len(adj))
d = a.sum(1).rsqrt()
a = d[:, None] * a * d[None, :]

order = torch.from_numpy(rng.permutation(len(y)))
train_idx, val_idx, test_idx = order[:160], order[160:240], order[240:]

model = GCN(x.shape[1], 8, 5)
print("trainable parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 151):
    model.train()
    optimizer.zero_grad()
    logits = model(x, a)
    loss = F.cross_entropy(logits[train_idx], y[train_idx])
    loss.backward()
    optimizer.step()
    if epoch % 25 == 0:
        model.eval()
        with torch.no_grad():
            pred = model(x, a).argmax(1)
        val = (pred[val_idx] == y[val_idx]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.3f} val acc {val:.3f}")

model.eval()
with torch.no_grad():
    pred = model(x, a).argmax(1)
print(f"test accuracy {(pred[test_idx] == y[test_idx]).float().mean():.4f}")
