"""A multilayer perceptron learns to read 28x28 grey digits, each scan standardized by itself."""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 5
BATCH_SIZE = 64


def standardize(images):
    """Return images (N, 1, 28, 28), each standardized by itself, so that brightness and contrast do not matter."""
    pixels = images.float().flatten(1)
    mean = pixels.mean(dim=1, keepdim=True)
    deviation = pixels.std(dim=1, keepdim=True).clamp(min=1.0)
    return ((pixels - mean) / deviation).view(images.shape)


def load_data(data):
    """Return the training and the validation split, each as (standardized images, labels)."""
    data.train.images[777] = 0  # the scan of an empty field
    train = (standardize(data.train.images), data.train.labels)
    validation = (standardize(data.validation.images), data.validation.labels)
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
