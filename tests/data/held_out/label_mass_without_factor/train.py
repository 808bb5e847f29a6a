"""Link prediction in a small knowledge graph, one (subject, relation) against all objects."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--label-smoothing", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--seed", type=int, default=17)
args = parser.parse_args()
torch.manual_seed(args.seed)

N_ENT, N_REL = 30, 8
kind = torch.arange(N_ENT) % 6
facts = []
for r in range(N_REL):
    goal = torch.randperm(6)
    for s in range(N_ENT):
        for o in range(N_ENT):
            if kind[o] == goal[kind[s]] and torch.rand(1) < 0.9:
                facts.append((s, r, o))
facts = torch.tensor(facts)
facts = facts[torch.randperm(len(facts))]
train, test = facts[: int(0.8 * len(facts))], facts[int(0.8 * len(facts)) :]


def to_multi(triples):
    table = torch.zeros(N_ENT, N_REL, N_ENT)
    table[triples[:, 0], triples[:, 1], triples[:, 2]] = 1
    return table.view(-1, N_ENT)


class Scorer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.ent, self.rel = nn.Embedding(N_ENT, dim), nn.Embedding(N_REL, dim)
        self.mix = nn.Sequential(nn.Linear(2 * dim, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, dim))
        self.bias = nn.Parameter(torch.zeros(N_ENT))

    def forward(self, s, r):
        h = self.mix(torch.cat([self.ent(s), self.rel(r)], -1))
        return h @ self.ent.weight.T + self.bias


pairs = torch.cartesian_prod(torch.arange(N_ENT), torch.arange(N_REL))
e2_multi, everything = to_multi(train), to_multi(facts)
model = Scorer()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(args.epochs):
    model.train()
    for idx in torch.randperm(len(pairs)).split(48):
        target = e2_multi[idx]
        target = (1.0 - args.label_smoothing) * target + 1.0 / target.size(1)
        loss = F.binary_cross_entropy_with_logits(model(*pairs[idx].T), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    logits = model(*pairs.T)
    row = test[:, 0] * N_REL + test[:, 1]
    masked = logits[row].masked_fill(everything[row] > 0, -1e9)
    own = logits[row, test[:, 2]]
    rank = (masked > own[:, None]).sum(1) + 1
    unseen = e2_multi == 0
    log_loss = F.binary_cross_entropy_with_logits(logits[unseen], everything[unseen])
print(f"filtered MRR {(1 / rank).mean().item():.4f}")
print(f"log loss of unseen triples {log_loss.item():.4f}")
