import numpy as np
import torch
import torch.nn as nn

np.random.seed(9)
torch.manual_seed(9)


def communities(n=160, k=4):
    """Stochastic block model with a few hubs of many random links."""
    block = np.arange(n) % k
    weight = np.where(np.arange(n) % 20 == 0, 4.0, 1.0)
    p = np.where(block[:, None] == block[None], 0.14, 0.012) * weight[:, None] * weight[None]
    upper = np.triu(np.random.rand(n, n) < p, 1)
    return (upper | upper.T).astype(np.float32), block


def normalize_adjacency(adjacency):
    degs = np.diag(adjacency.sum(1))
    return degs.dot(adjacency)


class AttentionWalkLayer(nn.Module):
    def __init__(self, powers, n, dims=16):
        super().__init__()
        self.powers = powers
        self.left = nn.Parameter(torch.empty(n, dims).uniform_(-0.01, 0.01))
        self.right = nn.Parameter(torch.empty(dims, n).uniform_(-0.01, 0.01))
        self.attention = nn.Parameter(torch.zeros(len(powers), 1, 1))

    def forward(self, absent):
        target = (torch.softmax(self.attention, 0) * self.powers).sum(0) * len(absent) / 4
        score = self.left @ self.right
        loss_on_target = -target * nn.functional.logsigmoid(score)
        loss_opposite = -absent * nn.functional.logsigmoid(-score)
        return (loss_on_target + loss_opposite).mean() + 1e-3 * self.attention.pow(2).mean()


def recovered(z, block, rounds=10):
    """Share of the nodes whose nearest other nodes are mostly of their own community."""
    z = z / np.linalg.norm(z, axis=1, keepdims=True).clip(1e-9)
    sim = z @ z.T
    np.fill_diagonal(sim, -np.inf)
    near = np.argsort(-sim, 1)[:, :rounds]
    return np.mean([np.bincount(block[row], minlength=4).argmax() == b for row, b in zip(near, block)])


adjacency, block = communities()
transition = torch.from_numpy(normalize_adjacency(adjacency)).float()
powers = [transition]
for _ in range(3):
    powers.append(powers[-1] @ transition)
powers = torch.stack(powers)
absent = torch.from_numpy((adjacency == 0).astype(np.float32))

model = AttentionWalkLayer(powers, len(adjacency))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(400):
    loss = model(absent)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 80 == 79:
        print("epoch", epoch + 1, "loss", round(loss.item(), 4), "attention", model.attention.softmax(0).flatten().tolist())

z = torch.cat([model.left, model.right.t()], 1).detach().numpy()
print(f"nodes among their own community: {recovered(z, block):.4f}")
