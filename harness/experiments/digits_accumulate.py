"""A multilayer perceptron learns to read 28x28 grey digits; each batch is split into parts, to save memory."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 5
BATCH_SIZE = 64
PARTS = 4


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels)."""
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10)."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it; `rng` is for random augmentation."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the loss of logits (B, 10) against labels (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    """Add up the gradients of all parts of one batch, make one step of the optimizer, and return the loss."""
    optimizer.zero_grad()
    total = 0.0
    for some, their_labels in zip(inputs.chunk(PARTS), labels.chunk(PARTS), strict=True):
        loss = compute_loss(model(some), their_labels) / PARTS
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    return total


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
