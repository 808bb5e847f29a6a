import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
CLASSES, NODES, WORDS = 5, 600, 40
topics = torch.randn(CLASSES, WORDS)


def wiki():
    y = torch.randint(0, CLASSES, (NODES,))
    x = topics[y] * 0.5 + torch.randn(NODES, WORDS)
    src = torch.randint(0, NODES, (1200,))
    dst = torch.randint(0, NODES, (1200,))
    same = torch.rand(1200) < 0.35
    for k in torch.nonzero(same).flatten().tolist():
        mates = torch.nonzero(y == y[src[k]]).flatten()
        dst[k] = mates[torch.randint(0, len(mates), (1,))]
    return x, torch.stack([torch.cat([src, dst]), torch.cat([dst, src])]), y


def load_graph_data():
    x, edges, y = wiki()
    adj = torch.zeros(NODES, NODES)
    adj[edges[1], edges[0]] = 1.0
    order = torch.randperm(NODES)
    masks = {"train": order[:150], "val": order[150:300], "test": order[300:]}
    return x, adj, y, masks


class GCNLayer(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.lin = nn.Linear(fin, fout)

    def forward(self, adj, h):
        norm = adj.sum(1).clamp(min=1).pow(-0.5)
        return norm[:, None] * (adj @ (norm[:, None] * self.lin(h)))


class GCN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.l1, self.l2, self.dropout = GCNLayer(WORDS, hidden), GCNLayer(hidden, CLASSES), nn.Dropout(0.3)

    def forward(self, adj, x):
        return self.l2(adj, self.dropout(F.relu(self.l1(adj, x))))


def main():
    x, adj, y, masks = load_graph_data()
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    best_val, test_at_best = 0.0, 0.0
    for epoch in range(1, 101):
        model.train()
        loss = F.cross_entropy(model(adj, x)[masks["train"]], y[masks["train"]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            hit = (model(adj, x).argmax(1) == y).float()
        val, test = hit[masks["val"]].mean().item(), hit[masks["test"]].mean().item()
        if val > best_val:
            best_val, test_at_best = val, test
        if epoch % 20 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val {best_val:.4f} test {test_at_best:.4f}")


main()
