"""A small network predicts the strength of concrete from its ingredients and its age."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 10
BATCH_SIZE = 64

COLUMNS = ("cement", "slag", "ash", "water", "plasticizer", "coarse", "fine", "age")


def load_data(data):
    """Return both splits as (columns (N, 8), strengths (N, 1)); every fifth sample is for validation.

    Columns and strength are standardized by the mean and deviation of the training samples.
    """
    columns = torch.stack([data.table[name] for name in COLUMNS], dim=1)
    strength = data.table["strength"].unsqueeze(1)
    validation = data.table["sample"] % 5 == 0
    train = ~validation
    columns = (columns - columns[train].mean(dim=0)) / columns[train].std(dim=0)
    strength = (strength - strength[train].mean()) / strength[train].std()
    return (columns[train], strength[train]), (columns[validation], strength[validation])


def build_model():
    """Return the network: columns (B, 8) to standardized strengths (B, 1)."""
    return nn.Sequential(
        nn.Linear(len(COLUMNS), 64),
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
    """Return the mean squared error of outputs (B, 1) against strengths (B, 1), a scalar."""
    return F.mse_loss(outputs, targets)


def train_step(model, optimizer, inputs, targets):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, targets):
    """Return the loss on the whole validation split."""
    model.eval()
    return {"val_loss": compute_loss(model(inputs), targets).item()}
