import numpy as np
import torch
import torch.nn as nn

# Sound events in field recordings: ten tags, most of them rare.
rng = np.random.default_rng(41)
torch.manual_seed(41)
TAGS = ["bird", "wind", "rain", "insect", "plane", "car", "frog", "voice", "dog", "water"]
rate = np.array([0.4, 0.3, 0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.05, 0.04])
signature = rng.standard_normal((len(TAGS), 32))


def recordings(n):
    y = (rng.random((n, len(TAGS))) < rate).astype(np.float32)
    x = y @ signature + 2.2 * rng.standard_normal((n, 32))
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


def f1_score(y_true, y_pred, average="binary"):
    """Like the function of the same name in the well-known library; classes 0 and 1 for a single column."""
    if average == "binary":
        tp, wrong = (y_true & y_pred).sum(), (y_true ^ y_pred).sum()
        return 2 * tp / max(2 * tp + wrong, 1)
    classes = [(y_true == c, y_pred == c) for c in np.unique(np.concatenate([y_true, y_pred]))]
    if average == "macro":
        return np.mean([f1_score(t, p) for t, p in classes])
    if average == "micro":
        tp = sum((t & p).sum() for t, p in classes)
        wrong = sum((t ^ p).sum() for t, p in classes)
        return 2 * tp / max(2 * tp + wrong, 1)
    raise ValueError(average)


class F1:
    def __init__(self, average="micro"):
        self.average = average

    def __call__(self, targets, predictions):
        return f1_score(targets, predictions, average=self.average)


class Trainer:
    def __init__(self, model, metric, lr=2e-3):
        self.model, self.metric = model, metric
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)
        self.criterion = nn.BCEWithLogitsLoss()

    def train(self, x, y, epochs=15):
        for epoch in range(epochs):
            self.model.train()
            for idx in torch.randperm(len(x)).split(64):
                loss = self.criterion(self.model(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"epoch {epoch:2d} loss {loss.item():.4f}")

    def test(self, x, y):
        self.model.eval()
        with torch.no_grad():
            predictions = (self.model(x) > 0).numpy()
        targets = y.numpy().astype(bool)
        results = {}
        for k, tag in enumerate(TAGS):
            results[tag] = self.metric(targets[:, k], predictions[:, k])
            print(f"  {tag:7s} {results[tag]:.3f}")
        return np.mean(list(results.values()))


net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, len(TAGS)))
trainer = Trainer(net, F1(average="micro"))
trainer.train(*recordings(3000))
print(f"mean F1 of the tags {trainer.test(*recordings(1500)):.4f}")
