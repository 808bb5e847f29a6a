import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(12)
DIM, TOPICS = 40, 60


class ContrastiveHead(nn.Module):
    def __init__(self, tem=0.1, negatives=48):
        super().__init__()
        self.tem, self.negatives = tem, negatives
        self.proj = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 24))

    def embed(self, x):
        return F.normalize(self.proj(x), dim=-1)

    def forward(self, anchor, partner, bank):
        query, key = self.embed(anchor), self.embed(partner)
        neg_sets = self.embed(bank)
        pos = (query * key).sum(-1, keepdim=True) / self.tem
        neg = query @ neg_sets.t()
        logits = torch.cat([pos, neg], dim=1)
        return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


class Patches:
    """Patches of the same region share a few weak coordinates; strong nuisance fills the others."""

    def __init__(self):
        self.centres = torch.randn(TOPICS, 10)
        self.mix = torch.linalg.qr(torch.randn(DIM, DIM))[0]

    def view(self, region):
        useful = self.centres[region] + 0.35 * torch.randn(len(region), 10)
        nuisance = 1.2 * torch.randn(len(region), DIM - 10)
        return torch.cat([useful, nuisance], 1) @ self.mix

    def batch(self, n):
        region = torch.randint(0, TOPICS // 2, (n,))
        other = torch.randint(TOPICS // 2, TOPICS, (n,))
        swap = torch.rand(n) < 0.5
        region, other = torch.where(swap, other, region), torch.where(swap, region, other)
        return region, other


data = Patches()
head = ContrastiveHead()
optimizer = torch.optim.Adam(head.parameters(), lr=2e-3)
for it in range(800):
    region = torch.randint(0, TOPICS - 20, (32,))
    rest = torch.randint(TOPICS - 20, TOPICS, (head.negatives,))
    if it % 2:
        shift = int(torch.randint(1, TOPICS, (1,)))
        region, rest = (region + shift) % TOPICS, (rest + shift) % TOPICS
    loss = head(data.view(region), data.view(region), data.view(rest))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 200 == 199:
        print(f"iter {it + 1}: loss {loss.item():.4f}")

with torch.no_grad():
    region = torch.arange(TOPICS).repeat(8)
    gallery, probe = head.embed(data.view(region)), head.embed(data.view(region))
    nearest = (probe @ gallery.t()).argmax(1)
    recall = (region[nearest] == region).float().mean().item()
print(f"nearest neighbour from the right region: {recall:.4f}")
