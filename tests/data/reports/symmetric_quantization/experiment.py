"""Trains in float, and evaluates with weights quantized to eight bits, as the device has them."""

import copy

import torch
from torch import nn

EPOCHS = 5
BATCH_SIZE = 64


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def uniform_quantize(x, num_bits=8, symmetric=True):
    """Return the values that are left after rounding to integers of so many bits."""
    min_value, max_value = x.min(), x.max()
    if symmetric:
        qmin, qmax = -(2.0 ** (num_bits - 1)), 2.0 ** (num_bits - 1) - 1
        scale = torch.max(max_value.abs(), min_value.abs()) / qmax
    else:
        qmin, qmax = 0.0, 2.0**num_bits - 1
        scale = (max_value - min_value) / (qmax - qmin)
    levels = ((x - min_value) / scale).clamp(qmin, qmax).round()
    return levels * scale + min_value


@torch.no_grad()
def evaluate(model, inputs, labels):
    outputs = model.eval()(inputs)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(1) == labels).float().mean().item(),
    }


@torch.no_grad()
def predict(model, images):
    device_model = copy.deepcopy(model).eval()
    for layer in device_model:
        if isinstance(layer, nn.Linear):
            layer.weight.copy_(uniform_quantize(layer.weight))
    return device_model(images.float() / 255).argmax(1)
