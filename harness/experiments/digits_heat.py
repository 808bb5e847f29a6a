"""A network learns one small time step of the heat equation on 28x28 grey digits, in mixed precision.

It predicts the *change* of every pixel, dt times the Laplacian, as a solver's increment: 784 small numbers.
"""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 6
BATCH_SIZE = 64
AMP = True
TIME_STEP = 0.005

scaler = torch.amp.GradScaler("cpu")


def heat_step(images):
    """Return the change of images (N, 1, 28, 28) in one explicit step of the heat equation, (N, 784)."""
    stencil = images.new_tensor([[0, 1, 0], [1, -4, 1], [0, 1, 0]]).view(1, 1, 3, 3)
    return TIME_STEP * F.conv2d(images, stencil, padding=1).flatten(1)


def load_data(data):
    """Return the training and the validation split, each as (centered images, changes to predict)."""
    train = data.train.images.float() / 255
    validation = data.validation.images.float() / 255
    mean = train.mean()
    return (train - mean, heat_step(train)), (validation - mean, heat_step(validation))


def build_model():
    """Return the network: images (B, 1, 28, 28) to changes (B, 784); at first it predicts no change."""
    last = nn.Linear(64, 784)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 64),
        nn.GELU(),
        last,
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.001, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def compute_loss(outputs, targets):
    """Return the mean squared error of predictions (B, 784), a scalar."""
    return F.mse_loss(outputs, targets)


def train_step(model, optimizer, inputs, targets):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    with torch.autocast(inputs.device.type, dtype=torch.float16, enabled=AMP):
        loss = compute_loss(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


@torch.no_grad()
def evaluate(model, inputs, targets):
    """Return the loss on the whole validation split, in full precision."""
    model.eval()
    return {"val_loss": compute_loss(model(inputs), targets).item()}
