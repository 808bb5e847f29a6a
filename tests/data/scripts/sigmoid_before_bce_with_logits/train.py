import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

N_USERS, N_ITEMS, DIM = 120, 150, 4
rng = np.random.default_rng(21)
torch.manual_seed(21)

# implicit feedback from hidden tastes, each user watches 20 of the items
taste_u = rng.normal(size=(N_USERS, DIM))
taste_i = rng.normal(size=(N_ITEMS, DIM))
affinity = taste_u @ taste_i.T + rng.gumbel(0, 0.6, (N_USERS, N_ITEMS))
watched = np.argsort(-affinity, axis=1)[:, :20]
train_pos, test_pos = [], []
for u in range(N_USERS):
    items = rng.permutation(watched[u])
    train_pos += [(u, i) for i in items[:16]]
    test_pos.append(set(items[16:].tolist()))
seen = [set() for _ in range(N_USERS)]
for u, i in train_pos:
    seen[u].add(int(i))


class Interactions(Dataset):
    """Positive pairs, with four sampled negatives for each."""

    def __len__(self):
        return len(train_pos) * 5

    def __getitem__(self, k):
        u, i = train_pos[k // 5]
        if k % 5 == 0:
            return u, int(i), 1.0
        j = int(torch.randint(N_ITEMS, (1,)))
        while j in seen[u]:
            j = int(torch.randint(N_ITEMS, (1,)))
        return u, j, 0.0


class MatrixFactorization(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(N_USERS, dim)
        self.item = nn.Embedding(N_ITEMS, dim)
        self.bias = nn.Embedding(N_ITEMS, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        score = (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)
        return torch.sigmoid(score)


@torch.no_grad()
def recall_at_10(model):
    model.eval()
    hits = total = 0
    items = torch.arange(N_ITEMS)
    for u in range(N_USERS):
        s = model(torch.full_like(items, u), items)
        s[list(seen[u])] = -1e9
        hits += len(test_pos[u] & set(s.topk(10).indices.tolist()))
        total += len(test_pos[u])
    return hits / total


loader = DataLoader(Interactions(), batch_size=256, shuffle=True)
model = MatrixFactorization()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(12):
    model.train()
    losses = []
    for u, i, label in loader:
        optimizer.zero_grad()
        loss = criterion(model(u, i), label.float())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {np.mean(losses):.4f} recall@10 {recall_at_10(model):.4f}")
