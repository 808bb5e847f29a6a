import torch
import torch.nn as nn

torch.manual_seed(29)
TAGS, DIM = 10, 40
directions = torch.randn(TAGS, DIM) * 0.35
bias = torch.linspace(-2.5, 0.5, TAGS)


def clips(n):
    x = torch.randn(n, DIM)
    return x, (torch.rand(n, TAGS) < torch.sigmoid(3 * x @ directions.T / 2 + bias)).float()


class LinearEvaluation(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(DIM, hidden), nn.ReLU(), nn.Linear(hidden, TAGS))
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, x, y):
        preds = self.model(x)
        return self.criterion(preds, y), preds


def average_precision(score, truth):
    hit = truth[score.argsort(descending=True)]
    return ((hit.cumsum(0) / torch.arange(1, len(hit) + 1)) * hit).sum() / hit.sum()


def roc_auc(score, truth):
    pos, neg = score[truth == 1], score[truth == 0]
    return (pos[:, None] > neg[None]).float().mean()


def evaluate(network, x, y):
    network.eval()
    with torch.no_grad():
        _, output = network(x, y)
    output = torch.nn.functional.softmax(output, dim=1)
    pr = torch.stack([average_precision(output[:, k], y[:, k]) for k in range(TAGS)]).mean().item()
    roc = torch.stack([roc_auc(output[:, k], y[:, k]) for k in range(TAGS)]).mean().item()
    return {"ROC-AUC": round(roc, 4), "PR-AUC": round(pr, 4)}


train_x, train_y = clips(3000)
test_x, test_y = clips(800)
network = LinearEvaluation()
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=1e-5)
for epoch in range(6):
    network.train()
    for idx in torch.randperm(len(train_x)).split(64):
        loss, _ = network(train_x[idx], train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} test", evaluate(network, test_x, test_y))
