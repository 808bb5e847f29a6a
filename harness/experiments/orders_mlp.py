"""A small network predicts whether an order will be late. It must work for the orders of next week."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 12
BATCH_SIZE = 64

COLUMNS = ("price", "items", "weight", "stock", "staff", "traffic")
RHYTHMS = (1, 2, 4)


def time_of_year(week):
    """Return sine and cosine of the week for each rhythm, in turns per 100 weeks: (N, 6)."""
    turns = [2 * torch.pi * rhythm * week / 100 for rhythm in RHYTHMS]
    return torch.stack([wave(turn) for turn in turns for wave in (torch.sin, torch.cos)], dim=1)


def load_data(data):
    """Return both splits as (columns (N, 12), labels (N,)); the orders from week 80 on are for validation.

    The columns of an order are standardized by the training orders.
    """
    week = data.table["week"]
    orders = torch.stack([data.table[name] for name in COLUMNS], dim=1)
    late = data.table["late"]
    validation = week >= 80
    train = ~validation
    orders = (orders - orders[train].mean(dim=0)) / orders[train].std(dim=0)
    inputs = torch.cat([orders, time_of_year(week)], dim=1)
    return (inputs[train], late[train]), (inputs[validation], late[validation])


def build_model():
    """Return the network: columns (B, 12) to logits (B, 2)."""
    width = len(COLUMNS) + 2 * len(RHYTHMS)
    return nn.Sequential(
        nn.Linear(width, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, 2),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.003, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def compute_loss(outputs, labels):
    """Return the loss of logits (B, 2) against labels (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
