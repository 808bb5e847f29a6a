"""A small network predicts from ten sensors whether a reading is an alarm. One reading in eleven is an alarm."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 12
BATCH_SIZE = 64

SENSORS = ("s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10")


def load_data(data):
    """Return both splits as (sensors (N, 10), targets (N, 1)); every fifth reading is for validation.

    A target is 1.0 for an alarm, else 0.0. The sensors are calibrated: their mean is near 0 and their deviation near 1.
    """
    sensors = torch.stack([data.table[name] for name in SENSORS], dim=1)
    alarm = data.table["alarm"].float().unsqueeze(1)
    validation = data.table["reading"] % 5 == 0
    train = ~validation
    return (sensors[train], alarm[train]), (sensors[validation], alarm[validation])


def build_model():
    """Return the network: sensors (B, 10) to one logit (B, 1)."""
    return nn.Sequential(
        nn.Linear(len(SENSORS), 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 1),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.005, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def compute_loss(outputs, targets):
    """Return the loss of logits (B, 1) against targets (B, 1), a scalar."""
    return F.binary_cross_entropy_with_logits(outputs, targets)


def train_step(model, optimizer, inputs, targets):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, targets):
    """Return the loss and the accuracy on the whole validation split; a logit above 0 is an alarm."""
    model.eval()
    outputs = model(inputs)
    accuracy = ((outputs > 0) == (targets > 0.5)).float().mean()
    return {"val_loss": compute_loss(outputs, targets).item(), "val_accuracy": accuracy.item()}


def predict(model, raw):
    """Return 1 for each row (B, 11) of the table with an alarm probability above one half, else 0: (B,)."""
    model.eval()
    probability = torch.sigmoid(model(raw[:, 1:])).squeeze(1)
    return (probability > 0.5).long()
