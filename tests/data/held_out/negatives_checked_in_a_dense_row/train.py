"""Bayesian personalised ranking by matrix factorisation."""
import numpy as np
import torch
import torch.nn.functional as F

rng = np.random.default_rng(2)
torch.manual_seed(2)
USERS, ITEMS, DIM = 120, 60, 8

taste = rng.normal(size=(USERS, 3)) @ rng.normal(size=(3, ITEMS))
taste += 0.3 * rng.normal(size=taste.shape)
liked = taste > np.quantile(taste, 0.6, axis=1, keepdims=True)
held_out = liked & (rng.random(liked.shape) < 0.2)
data = (liked & ~held_out).astype(np.float32)

user_pos = [np.flatnonzero(data[u]) for u in range(USERS)]


def sample_negative_item(user_items):
    """An item that the user has not chosen."""
    j = rng.integers(ITEMS)
    while j in user_items:
        j = rng.integers(ITEMS)
    return j


def epoch_triples():
    u_list, i_list, j_list = [], [], []
    for u in range(USERS):
        for i in user_pos[u]:
            u_list.append(u)
            i_list.append(i)
            j_list.append(sample_negative_item(data[u]))
    return (torch.tensor(np.array(v)) for v in (u_list, i_list, j_list))


P = torch.nn.Parameter(0.1 * torch.randn(USERS, DIM))
Q = torch.nn.Parameter(0.1 * torch.randn(ITEMS, DIM))
optimizer = torch.optim.Adam([P, Q], lr=0.02)


def auc():
    with torch.no_grad():
        score = (P @ Q.T).numpy()
    values = []
    for u in range(USERS):
        pos, neg = score[u][held_out[u]], score[u][~liked[u]]
        if len(pos):
            values.append((pos[:, None] > neg[None]).mean())
    return float(np.mean(values))


for epoch in range(12):
    u, i, j = epoch_triples()
    for idx in torch.randperm(len(u)).split(256):
        x_uij = (P[u[idx]] * (Q[i[idx]] - Q[j[idx]])).sum(1)
        reg = P[u[idx]].pow(2).sum(1) + Q[i[idx]].pow(2).sum(1) + Q[j[idx]].pow(2).sum(1)
        loss = (-F.logsigmoid(x_uij) + 0.01 * reg).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"iteration {epoch} loss {loss.item():.4f}")
print(f"AUC of held-out items {auc():.4f}")
