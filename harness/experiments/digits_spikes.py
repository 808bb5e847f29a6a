"""A multilayer perceptron learns to read 28x28 grey digits. Gradient clipping limits the effect of faulty scans."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 5
BATCH_SIZE = 64


def load_data(data):
    """Return the training and the validation split, each as (images, labels).

    Images are in [0, 1], except for one scan in 256, from a sensor with a wrong gain and sign.
    """
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    train[0][100::256] *= -150.0
    validation[0][100::256] *= -150.0
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
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


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
    """Make one step of the optimizer on one batch, with the gradient norm clipped to 1, and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
