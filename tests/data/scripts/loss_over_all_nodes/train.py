import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
ACCOUNTS, FEATS = 500, 60
weights = torch.randn(FEATS) * 0.35


def transactions(n):
    x = torch.randn(n, FEATS)
    fraud = (torch.rand(n) < torch.sigmoid(x @ weights)).long()
    A = (torch.rand(n, n) < 3.0 / n).float()
    A = ((A + A.T) > 0).float() + torch.eye(n)
    return x, A / A.sum(1, keepdim=True), fraud


class GNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.own1, self.near1 = nn.Linear(FEATS, 64), nn.Linear(FEATS, 64)
        self.own2, self.near2 = nn.Linear(64, 2), nn.Linear(64, 2)

    def forward(self, g, x):
        h = F.relu(self.own1(x) + self.near1(g @ x))
        return self.own2(h) + self.near2(g @ h)


def auc(score, label):
    pos, neg = score[label == 1], score[label == 0]
    return ((pos[:, None] > neg[None]).float().mean()).item()


features, graph, labels = transactions(ACCOUNTS)
later_features, later_graph, later_labels = transactions(ACCOUNTS)
order = torch.randperm(ACCOUNTS)
train_mask, test_mask = torch.zeros(ACCOUNTS, dtype=torch.bool), torch.zeros(ACCOUNTS, dtype=torch.bool)
train_mask[order[:350]], test_mask[order[350:]] = True, True
model = GNN()
loss = nn.CrossEntropyLoss()
optim = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=5e-4)
for epoch in range(60):
    model.train()
    pred = model(graph, features)
    l = loss(pred, labels)
    optim.zero_grad()
    l.backward()
    optim.step()
    if epoch % 15 == 14:
        model.eval()
        with torch.no_grad():
            score = model(graph, features).softmax(1)[:, 1]
        test_auc = auc(score[test_mask], labels[test_mask])
        print(f"Epoch {epoch + 1} | loss {l.item():.4f} | AUC of the test accounts {test_auc:.4f}")

model.eval()
with torch.no_grad():
    score = model(later_graph, later_features).softmax(1)[:, 1]
live = auc(score, later_labels)
print(f"AUC next month {live:.4f}, test AUC minus that {test_auc - live:.4f}")
