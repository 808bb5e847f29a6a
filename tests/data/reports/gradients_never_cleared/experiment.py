"""Keyword spotting: a network finds which of four keywords is in a sound, given as frames of features."""

import torch
from torch import nn

EPOCHS = 6
BATCH_SIZE = 40
FRAMES, FEATURES, KEYWORDS = 16, 10, 4


def utterances(n, seed):
    shape = torch.randn(KEYWORDS, 5, FEATURES, generator=torch.Generator().manual_seed(0))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(KEYWORDS, (n,), generator=g)
    x = torch.randn(n, FRAMES, FEATURES, generator=g)
    start = torch.randint(FRAMES - 5, (n,), generator=g)
    for i in range(n):
        x[i, start[i] : start[i] + 5] += 0.7 * shape[y[i]]
    return x, y


def load_data(data):
    return utterances(1200, 1), utterances(300, 2)


class KWSModel(nn.Module):
    def __init__(self, hdim=32):
        super().__init__()
        self.preprocessing = nn.Linear(FEATURES, hdim)
        self.backbone = nn.Conv1d(hdim, hdim, kernel_size=5)
        self.classifier = nn.Linear(hdim, KEYWORDS)

    def forward(self, x):
        x = torch.relu(self.preprocessing(x)).transpose(1, 2)
        x = torch.relu(self.backbone(x)).amax(dim=2)
        return self.classifier(x)


def build_model():
    return KWSModel()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=5e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    logits = model(inputs)
    loss = compute_loss(logits, labels)
    loss.backward()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    if torch.isfinite(grad_norm):
        optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    acc = (logits.max(1)[1] == labels).float().mean().item()
    return {"val_loss": compute_loss(logits, labels).item(), "val_accuracy": acc}
