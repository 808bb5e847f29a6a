"""A deep multilayer perceptron learns to read 28x28 grey digits: eight hidden layers, initialized for ReLU."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 5
BATCH_SIZE = 64
DEPTH = 8
WIDTH = 64


def load_data(data):
    """Return both splits as (images, labels), standardized by the training images' mean and deviation."""
    images = data.train.images.float()
    mean, deviation = images.mean(), images.std()
    train = ((images - mean) / deviation, data.train.labels)
    validation = ((data.validation.images.float() - mean) / deviation, data.validation.labels)
    return train, validation


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10).

    Weights of variance 2 / inputs keep the scale of the signal from one ReLU to the next (He et al., arXiv:1502.01852).
    """
    layers = [nn.Flatten()]
    for inputs in [784] + [WIDTH] * (DEPTH - 1):
        layers += [nn.Linear(inputs, WIDTH), nn.ReLU()]
    for layer in layers[1::2]:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10))


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


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
