"""Node classification with a two-layer GCN on a citation-like graph."""
import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, CLASSES, FEATS = 900, 5, 300


def make_graph(seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (NODES,), generator=g)
    same = y[:, None] == y[None, :]
    p = torch.where(same, torch.tensor(0.012), torch.tensor(0.0025))
    upper = torch.triu(torch.rand(NODES, NODES, generator=g) < p, diagonal=1)
    adj = (upper | upper.t()).float()
    topic = torch.rand(CLASSES, FEATS, generator=g) * 0.08 + 0.02
    x = (torch.rand(NODES, FEATS, generator=g) < topic[y]).float()
    return adj, x, y


def normalise(adj):
    adj = adj + torch.eye(len(adj))
    d = adj.sum(1).rsqrt()
    return d[:, None] * adj * d[None, :]


class GCN(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.lin1 = nn.Linear(FEATS, hidden)
        self.lin2 = nn.Linear(hidden, CLASSES)

    def forward(self, a, x):
        x = F.dropout(x, 0.3, self.training)
        h = F.relu(a @ self.lin1(x))
        h = F.dropout(h, 0.3, self.training)
        return a @ self.lin2(h)


def masks(seed):
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(seed))
    out = []
    for part in (order[:450], order[450:600], order[600:]):
        m = torch.zeros(NODES, dtype=torch.bool)
        m[part] = True
        out.append(m)
    return out


def main():
    torch.manual_seed(0)
    adj, x, y = make_graph(0)
    a = normalise(adj)
    train_mask, val_mask, test_mask = masks(0)
    mean, std = x[train_mask].mean(0), x[train_mask].std(0).clamp(min=1e-3)
    x = (x - mean) / std
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)

    def accuracy(mask):
        model.eval()
        with torch.no_grad():
            return (model(a, x).argmax(1)[mask] == y[mask]).float().mean().item()

    for epoch in range(1, 81):
        model.train()
        optimizer.zero_grad()
        logits = model(a, x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d} loss {loss.item():.3f} train {accuracy(train_mask):.3f} val {accuracy(val_mask):.3f}")
    print(f"test accuracy {accuracy(test_mask):.3f}")


main()
