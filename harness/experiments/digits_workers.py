"""A network learns to read digits that are moved at random. Two loader workers draw the distances."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 6
BATCH_SIZE = 64
AUGMENT = True
WORKERS = 2
FARTHEST = 2


def load_data(data):
    """Return the training and the validation split, each as (standardized images, labels)."""
    mean, deviation = 0.23, 0.32
    train = ((data.train.images.float() / 255 - mean) / deviation, data.train.labels)
    validation = ((data.validation.images.float() / 255 - mean) / deviation, data.validation.labels)
    return train, validation


def start_worker(seed, worker):
    """Return the generator of one worker, a stream of its own."""
    return np.random.default_rng([seed, worker])


def moved(image, generator):
    """Return an image (1, 28, 28) moved by up to FARTHEST pixels down and to the right."""
    down, right = generator.integers(-FARTHEST, FARTHEST + 1, size=2).tolist()
    return image.roll((down, right), dims=(1, 2))


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it: each worker moves every WORKERS-th image."""
    if AUGMENT:
        seed = int(torch.randint(2**31, (), generator=rng))
        workers = [start_worker(seed, worker) for worker in range(WORKERS)]
        inputs = torch.stack([moved(image, workers[index % WORKERS]) for index, image in enumerate(inputs)])
    return inputs, labels


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10)."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


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
