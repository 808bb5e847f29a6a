"""Screening for a rare finding in one-channel signals (binary, imbalanced)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def signals(n, seed, length=64):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(np.float32)
    t = np.arange(length)
    x = rng.normal(0, 0.6, (n, length))
    for i in range(n):
        for _ in range(3):
            x[i] += np.exp(-0.5 * ((t - rng.uniform(0, length)) / 3) ** 2)
        if y[i]:
            c = rng.uniform(8, length - 8)
            x[i] += rng.uniform(0.8, 2.2) * (np.exp(-0.5 * ((t - c) / 1.5) ** 2) - np.exp(-0.5 * ((t - c - 4) / 1.5) ** 2))
    return torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y)


class SignalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(1, 16, 9, padding=4)
        self.b1 = nn.BatchNorm1d(16)
        self.c2 = nn.Conv1d(16, 24, 7, padding=3)
        self.b2 = nn.BatchNorm1d(24)
        self.fc = nn.Linear(24, 1)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.b1(self.c1(x))), 2)
        x = F.relu(self.b2(self.c2(x)))
        return self.fc(x.amax(-1)).squeeze(1)


def recall_precision(pred, y):
    tp = (pred & (y > 0.5)).sum().item()
    return tp / max(1, (y > 0.5).sum().item()), tp / max(1, pred.sum().item())


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        output = model(x)
    recall, precision = recall_precision(output > 0.5, y)
    return recall, precision, F.binary_cross_entropy_with_logits(output, y).item()


def main(epochs=10, batch=32):
    torch.manual_seed(0)
    x, y = signals(1200, 0)
    xv, yv = signals(500, 1)
    mean, std = x.mean(), x.std()
    x, xv = (x - mean) / std, (xv - mean) / std
    model = SignalNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(epochs):
        model.train()
        for rows in torch.randperm(len(x)).split(batch):
            if len(rows) < batch:
                continue
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        recall, precision, vloss = evaluate(model, xv, yv)
        print(f"epoch {epoch}: val loss {vloss:.3f} precision {precision:.3f} recall {recall:.3f}")
    print(f"precision {precision:.3f}, recall {recall:.3f}")


if __name__ == "__main__":
    main()
