import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(1)
torch.manual_seed(1)


def citation_graph(n=500, k=6, words=30):
    labels = rng.integers(0, k, n)
    topic = rng.normal(size=(k, words))
    features = topic[labels] * 0.6 + rng.normal(size=(n, words))
    popularity = rng.pareto(1.2, n) + 0.3
    A = np.zeros((n, n), np.float32)
    for i in range(n):
        weight = popularity * np.where(labels == labels[i], 8.0, 1.0)
        weight[i] = 0
        for j in rng.choice(n, size=5, replace=False, p=weight / weight.sum()):
            A[i, j] = A[j, i] = 1.0
    return torch.tensor(features, dtype=torch.float32), torch.from_numpy(A), torch.from_numpy(labels)


class GraphNetworkBlock(nn.Module):
    """Edge model: the sender's node; node model: a linear map of all received messages."""

    def __init__(self, in_size, out_size):
        super().__init__()
        self.node_model = nn.Linear(in_size, out_size)

    def forward(self, nodes, adj):
        received = adj @ nodes
        return self.node_model(received)


class GCN(nn.Module):
    def __init__(self, in_size, hidden, classes):
        super().__init__()
        self.gn1, self.gn2 = GraphNetworkBlock(in_size, hidden), GraphNetworkBlock(hidden, classes)
        self.dropout = nn.Dropout(0.5)

    def forward(self, nodes, adj):
        return self.gn2(self.dropout(torch.relu(self.gn1(nodes, adj))), adj)


features, A, labels = citation_graph()
adj = A + torch.eye(len(A))
order = torch.randperm(len(labels))
train_idx, val_idx, test_idx = order[:120], order[120:250], order[250:]
model = GCN(features.size(1), 16, 6)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(100):
    model.train()
    loss = loss_fn(model(features, adj)[train_idx], labels[train_idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        model.eval()
        with torch.no_grad():
            right = (model(features, adj).argmax(1) == labels).float()
        val, test = right[val_idx].mean().item(), right[test_idx].mean().item()
        print(f"Epoch {epoch + 1} loss {loss.item():.4f} val {val:.4f} Test accuracy {test:.4f}")
