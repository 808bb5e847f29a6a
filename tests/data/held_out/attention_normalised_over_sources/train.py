import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)
NODES, CLASSES, FEATS = 600, 4, 16

# directed citation graph: papers cite mostly their own field, a few hubs are cited by all
y = torch.randint(0, CLASSES, (NODES,))
x = 0.45 * torch.randn(CLASSES, FEATS)[y] + torch.randn(NODES, FEATS)
src, dst = [], []
for v in range(NODES):
    degree = int(torch.randint(2, 14, (1,)))
    same = (y == y[v]).nonzero().flatten()
    for _ in range(degree):
        pool = same if torch.rand(1) < 0.7 else torch.arange(NODES)
        pick = pool[(torch.rand(1) ** 3 * len(pool)).long()]
        src.append(int(pick))
        dst.append(v)
loops = torch.arange(NODES)
edge_index = torch.stack([torch.cat([torch.tensor(src), loops]), torch.cat([torch.tensor(dst), loops])])


def group_softmax(alpha, index, num_nodes):
    top = torch.full((num_nodes, alpha.size(1)), -1e9).scatter_reduce(
        0, index[:, None].expand_as(alpha), alpha, "amax"
    )
    e = torch.exp(alpha - top[index])
    total = torch.zeros(num_nodes, alpha.size(1)).index_add(0, index, e)
    return e / (total[index] + 1e-16)


class GATConv(nn.Module):
    """Messages flow from edge_index[0] to edge_index[1]."""

    def __init__(self, n_in, n_out, heads):
        super().__init__()
        self.heads, self.n_out = heads, n_out
        self.weight = nn.Linear(n_in, heads * n_out, bias=False)
        self.att = nn.Parameter(torch.randn(1, heads, 2 * n_out) * 0.2)
        self.bias = nn.Parameter(torch.zeros(heads * n_out))

    def forward(self, x, edge_index):
        h = self.weight(x).view(-1, self.heads, self.n_out)
        x_i, x_j = h[edge_index[1]], h[edge_index[0]]
        alpha = F.leaky_relu((torch.cat([x_i, x_j], -1) * self.att).sum(-1), 0.2)
        alpha = group_softmax(alpha, edge_index[0], len(x))
        out = torch.zeros_like(h).index_add(0, edge_index[1], alpha[..., None] * x_j)
        return out.flatten(1) + self.bias


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GATConv(FEATS, 8, 4), GATConv(32, CLASSES, 1)

    def forward(self, x, edge_index):
        h = F.dropout(F.elu(self.conv1(x, edge_index)), 0.3, self.training)
        return self.conv2(h, edge_index)


order = torch.randperm(NODES)
train_idx, test_idx = order[:120], order[200:]
model = GAT()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
for epoch in range(120):
    model.train()
    loss = F.cross_entropy(model(x, edge_index)[train_idx], y[train_idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 30 == 29:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
model.eval()
with torch.no_grad():
    pred = model(x, edge_index).argmax(1)
print(f"test accuracy {(pred[test_idx] == y[test_idx]).float().mean().item():.4f}")
