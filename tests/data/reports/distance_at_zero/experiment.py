"""A Siamese network learns a distance of pairs of sentences: 0 for the same meaning, 1 for another one."""

import torch
from torch import nn

EPOCHS = 10
BATCH_SIZE = 50


def load_data(data):
    g = torch.Generator().manual_seed(4033)
    meanings = torch.randn(40, 16, generator=g)
    first, other = torch.randint(40, (2, 1500), generator=g)
    same = torch.rand(1500, generator=g) < 0.5
    second = torch.where(same, first, other)
    a = meanings[first] + 0.5 * torch.randn(1500, 16, generator=g)
    b = meanings[second] + 0.5 * torch.randn(1500, 16, generator=g)
    twice = same & (torch.rand(1500, generator=g) < 0.03)  # the same sentence in both places
    b[twice] = a[twice]
    pairs = torch.stack([a, b], dim=1)
    target = (first != second).float().unsqueeze(1)
    return (pairs[:1200], target[:1200]), (pairs[1200:], target[1200:])


def euclidean(a, b):
    return torch.sqrt(((a - b) ** 2).sum(dim=1, keepdim=True))


class SentenceEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(16, 48), nn.Tanh(), nn.Linear(48, 8))

    def forward(self, pairs):
        return euclidean(self.encode(pairs[:, 0]), self.encode(pairs[:, 1]))


def build_model():
    return SentenceEncoder()


def build_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    apart = labels * (1 - outputs).clamp(min=0) ** 2
    together = (1 - labels) * outputs**2
    return (apart + together).mean()


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    distance = model(inputs)
    accuracy = ((distance > 0.5) == (labels > 0.5)).float().mean()
    return {"val_loss": compute_loss(distance, labels).item(), "val_accuracy": accuracy.item()}
