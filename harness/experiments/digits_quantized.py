"""A network learns to read digits. To predict, it quantizes its weights and its hidden activations to few bits."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64
LEVELS = 15
MEAN = 0.23
STD = 0.32


def normalize(images):
    """Return grey images, uint8, as standardized images, float (N, 1, 28, 28)."""
    return (images.float() / 255 - MEAN) / STD


def load_data(data):
    """Return the training and the validation split, each as (standardized images, labels)."""
    train = (normalize(data.train.images), data.train.labels)
    validation = (normalize(data.validation.images), data.validation.labels)
    return train, validation


class ObservedMLP(nn.Module):
    """A network with one hidden layer. It tracks its largest hidden activation, which sets the quantization scale."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(784, 64)
        self.last = nn.Linear(64, 10)
        self.register_buffer("largest", torch.tensor(0.0))

    def hidden(self, images):
        """Return the hidden activations (B, 64) of images (B, 1, 28, 28)."""
        return self.first(images.flatten(1)).relu()

    def forward(self, images):
        """Return logits (B, 10) of images (B, 1, 28, 28)."""
        return self.last(self.hidden(images))

    @torch.no_grad()
    def calibrate(self, images):
        """Note the largest hidden activation of a batch; older ones fade."""
        self.largest.mul_(0.9).add_(0.1 * self.hidden(images).max())


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10)."""
    return ObservedMLP()


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it; `rng` is for random augmentation."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the loss of logits (B, 10) against labels (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch, calibrate on it, and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    model.calibrate(inputs)
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}


def quantize(values, largest):
    """Return the values clipped to [-largest, largest] and rounded to multiples of largest / LEVELS."""
    step = largest / LEVELS
    return (values / step).round().clamp(-LEVELS, LEVELS) * step


@torch.no_grad()
def predict(model, images):
    """Return the digits (B,) that the quantized network predicts for grey images, uint8 (B, 1, 28, 28)."""
    first, last = (quantize(layer.weight, layer.weight.abs().max()) for layer in (model.first, model.last))
    hidden = F.linear(normalize(images).flatten(1), first, model.first.bias).relu()
    return F.linear(quantize(hidden, model.largest), last, model.last.bias).argmax(dim=1)
