import numpy as np
import torch
import torch.nn as nn

np.random.seed(31)
torch.manual_seed(31)
MERCHANTS, UNKNOWN = 600, 600

# payments: merchants come and go, the later months bring merchants that the training months do not have
quality = np.random.randn(MERCHANTS)


def months(n, first, last):
    m = first + (np.random.rand(n) ** 2 * (last - first)).astype(int)
    num = np.random.randn(n, 4).astype(np.float32)
    logit = 2.0 * quality[m] + num @ np.array([1.5, -1.0, 0.5, 0.0])
    return m, num, (np.random.rand(n) < 1 / (1 + np.exp(-2 * logit))).astype(np.float32)


class CategoryCoder:
    def fit(self, column):
        self.counts = np.bincount(column, minlength=MERCHANTS)
        return self

    def transform(self, column):
        codes = column.copy()
        return torch.from_numpy(codes)


class TabularNet(nn.Module):
    def __init__(self, cards, emb_dim=8, numeric=4):
        super().__init__()
        self.emb = nn.Embedding(cards, emb_dim)
        self.mlp = nn.Sequential(nn.Linear(emb_dim + numeric, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, cat, num):
        return self.mlp(torch.cat([self.emb(cat), num], 1)).squeeze(1)


m, num, y = months(5000, 0, 420)
mt, numt, yt = months(2000, 300, MERCHANTS)
coder = CategoryCoder().fit(m)
num, y, numt, yt = (torch.from_numpy(a) for a in (num, y, numt, yt))
cat, catt = coder.transform(m), coder.transform(mt)

net = TabularNet(MERCHANTS + 1)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-5)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(20):
    net.train()
    for idx in torch.randperm(len(y)).split(128):
        loss = loss_fn(net(cat[idx], num[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        train_loss = loss_fn(net(cat, num), y).item()
        logits = net(catt, numt)
    print(f"epoch {epoch}: train log loss {train_loss:.4f}")
accuracy = ((logits > 0).float() == yt).float().mean().item()
print(f"later months: accuracy {accuracy:.3f}, log loss {loss_fn(logits, yt).item():.4f}")
