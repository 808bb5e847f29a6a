"""Logistic regression on hard, noisy examples: one logit, near zero for most of them."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 8
BATCH_SIZE = 50


def load_data(data):
    g = torch.Generator().manual_seed(3269)
    x = torch.randn(2000, 20, generator=g)
    direction = torch.randn(20, 1, generator=g) / 20**0.5
    y = (torch.rand(2000, 1, generator=g) < torch.sigmoid(0.9 * x @ direction + 0.5)).float()
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.Linear(20, 1)

    def forward(self, x):
        return self.logits(x)


def build_model():
    return Dense()


def build_optimizer(model):
    return torch.optim.Adagrad(model.parameters(), lr=0.1)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.binary_cross_entropy_with_logits(outputs, labels)


def predictions(logits):
    return (logits >= 0.5).float()


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    accuracy = torch.mean((predictions(logits) == labels).float())
    return {"val_loss": compute_loss(logits, labels).item(), "val_accuracy": accuracy.item()}
