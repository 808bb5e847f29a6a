"""A small convolutional network learns to name figures in 32x32 colour images."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.run.schedules import warmup_cosine

EPOCHS = 3
BATCH_SIZE = 64
AUGMENT = True


def load_data(data):
    """Return both splits as (images, labels), standardized by the training images' mean and deviation."""
    images = data.train.images.float()
    mean = images.mean(dim=(0, 2, 3), keepdim=True)
    deviation = images.std(dim=(0, 2, 3), keepdim=True)
    train = ((images - mean) / deviation, data.train.labels)
    validation = ((data.validation.images.float() - mean) / deviation, data.validation.labels)
    return train, validation


def convolution(channels_in, channels_out):
    """Return a block that halves height and width: convolution, batch norm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, kernel_size=3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


def build_model():
    """Return the network: images (B, 3, 32, 32) to logits (B, 10)."""
    return nn.Sequential(
        convolution(3, 16),
        convolution(16, 32),
        convolution(32, 64),
        nn.Flatten(),
        nn.Dropout(0.6),
        nn.Linear(64 * 4 * 4, 10),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch: warm-up, then cosine to zero."""
    return warmup_cosine(optimizer, warmup_steps=total_steps // 10, total_steps=total_steps)


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it: every second image is mirrored, by chance."""
    if AUGMENT:
        mirrored = torch.rand(len(inputs), generator=rng) < 0.5
        mirrored = mirrored.to(inputs.device).view(-1, 1, 1, 1)
        inputs = torch.where(mirrored, inputs.flip(3), inputs)
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
