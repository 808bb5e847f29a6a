from itertools import combinations

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class HardNegativePairSelector:
    """All positive pairs of the batch and as many of the hardest negative pairs."""

    def __init__(self, cpu=True):
        self.cpu = cpu

    def get_pairs(self, embeddings, labels):
        distance_matrix = torch.cdist(embeddings, embeddings).detach().numpy()
        labels = labels.numpy()
        all_pairs = np.array(list(combinations(range(len(labels)), 2)))
        same = labels[all_pairs[:, 0]] == labels[all_pairs[:, 1]]
        positive_pairs, negative_pairs = all_pairs[same], all_pairs[~same]
        negative_distances = distance_matrix[negative_pairs[:, 0], negative_pairs[:, 1]]
        top_negatives = np.argpartition(-negative_distances, len(positive_pairs))[: len(positive_pairs)]
        return positive_pairs, negative_pairs[top_negatives]


class OnlineContrastiveLoss(nn.Module):
    def __init__(self, margin, pair_selector):
        super().__init__()
        self.margin, self.pair_selector = margin, pair_selector

    def forward(self, embeddings, target):
        pos, neg = self.pair_selector.get_pairs(embeddings, target)
        positive_loss = (embeddings[pos[:, 0]] - embeddings[pos[:, 1]]).pow(2).sum(1)
        gap = F.relu(self.margin - (embeddings[neg[:, 0]] - embeddings[neg[:, 1]]).pow(2).sum(1).add(1e-9).sqrt())
        return torch.cat([positive_loss, gap.pow(2)]).mean()


class EmbeddingNet(nn.Module):
    def __init__(self, d_in, d_out=8):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(d_in, 96), nn.PReLU(), nn.Linear(96, 96), nn.PReLU(), nn.Linear(96, d_out))

    def forward(self, x):
        return self.fc(x)


def digits(n, centres, rng):
    y = rng.integers(0, len(centres), n)
    x = centres[y] + 0.9 * rng.standard_normal((n, centres.shape[1]))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def balanced_batch(y, rng, classes=6, samples=5):
    chosen = rng.choice(int(y.max()) + 1, classes, replace=False)
    return np.concatenate([rng.choice(np.flatnonzero(y.numpy() == c), samples, replace=False) for c in chosen])


def main():
    rng = np.random.default_rng(8)
    torch.manual_seed(8)
    centres = rng.standard_normal((20, 24))
    centres[10:] = centres[:10] + 0.8 * rng.standard_normal((10, 24))  # look-alikes
    x, y = digits(1200, centres, rng)
    xv, yv = digits(600, centres, rng)
    net = EmbeddingNet(24)
    loss_fn = OnlineContrastiveLoss(1.0, HardNegativePairSelector())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(900):
        idx = balanced_batch(y, rng)
        loss = loss_fn(net(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 149:
            print(f"step {step + 1} loss {loss.item():.4f}")
    with torch.no_grad():
        emb = net(x)
        means = torch.stack([emb[y == c].mean(0) for c in range(20)])
        accuracy = (torch.cdist(net(xv), means).argmin(1) == yv).float().mean().item()
    print(f"accuracy of the nearest class mean: {accuracy:.4f}")


main()
