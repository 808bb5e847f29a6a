"""A small network predicts from the readings of a machine whether it will fail. It must work for new machines."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 12
BATCH_SIZE = 64

READINGS = ("t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "load", "speed", "heat", "noise")


def load_data(data):
    """Return both splits as (standardized readings (N, 14), labels (N,)); every fifth machine is for validation."""
    machine = data.table["machine"]
    readings = torch.stack([data.table[name] for name in READINGS], dim=1)
    failed = data.table["failed"]
    validation = machine % 5 == 0
    train = ~validation
    readings = (readings - readings[train].mean(dim=0)) / readings[train].std(dim=0)
    return (readings[train], failed[train]), (readings[validation], failed[validation])


def build_model():
    """Return the network: readings (B, 14) to logits (B, 2)."""
    return nn.Sequential(nn.Linear(len(READINGS), 128), nn.ReLU(), nn.Linear(128, 2))


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.005, fused=True)


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
