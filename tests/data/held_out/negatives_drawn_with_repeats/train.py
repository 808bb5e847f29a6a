import numpy as np
import torch
import torch.nn as nn

USERS, ITEMS, DIM = 120, 130, 8
rng = np.random.default_rng(17)
torch.manual_seed(17)


def interactions():
    u, v = rng.standard_normal((USERS, 5)), rng.standard_normal((ITEMS, 5))
    taste = u @ v.T + 1.5 * rng.gumbel(size=(USERS, ITEMS))
    return np.argsort(-taste, 1)[:, :13]


class GMF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, DIM), nn.Embedding(ITEMS, DIM)
        for e in (self.user, self.item):
            nn.init.normal_(e.weight, std=0.1)
        self.out = nn.Linear(DIM, 1)

    def forward(self, u, i):
        return self.out(self.user(u) * self.item(i)).squeeze(-1)


liked = interactions()
held_out = liked[np.arange(USERS), rng.integers(0, 13, USERS)]
train_pairs = [(u, i) for u in range(USERS) for i in liked[u] if i != held_out[u]]
seen = [set(row) for row in liked]


def training_batch(num_neg=4):
    users, items, y = [], [], []
    for u, i in train_pairs:
        users.append(u), items.append(i), y.append(1.0)
        for _ in range(num_neg):
            j = rng.integers(ITEMS)
            while j in seen[u]:
                j = rng.integers(ITEMS)
            users.append(u), items.append(j), y.append(0.0)
    return torch.tensor(users), torch.tensor(np.array(items)), torch.tensor(y)


def test_negatives(u, n=99):
    unseen = [i for i in range(ITEMS) if i not in seen[u]]
    return rng.choice(unseen, n)


def evaluate(model, k=10):
    hits, ndcgs = [], []
    for u in range(USERS):
        candidates = np.unique(np.append(test_negatives(u), held_out[u]))
        with torch.no_grad():
            scores = model(torch.full((len(candidates),), u), torch.from_numpy(candidates)).numpy()
        top = candidates[np.argsort(-scores)][:k]
        place = np.flatnonzero(top == held_out[u])
        hits.append(len(place) > 0)
        ndcgs.append(1 / np.log2(place[0] + 2) if len(place) else 0.0)
    return np.mean(hits), np.mean(ndcgs)


model = GMF()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(15):
    users, items, y = training_batch()
    for idx in torch.randperm(len(y)).split(256):
        loss = criterion(model(users[idx], items[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", round(loss.item(), 4))
runs = np.array([evaluate(model) for _ in range(5)]).mean(0)
print("HR@10 {:.4f} NDCG@10 {:.4f}".format(*runs))
