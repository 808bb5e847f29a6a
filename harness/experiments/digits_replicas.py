"""Two replicas of a network learn to read digits, each on its share of every batch: data parallelism in one process."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64
RANKS = 2


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels)."""
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


class Replicas(nn.Module):
    """Equal copies of a network. Each one gets the mean of all their gradients, so they stay equal."""

    def __init__(self, network):
        super().__init__()
        self.replicas = nn.ModuleList([copy.deepcopy(network) for _ in range(RANKS)])

    def forward(self, images, rank=0):
        """Return the logits (B, 10) of one replica."""
        return self.replicas[rank](images)


def build_model():
    """Return the replicas: images (B, 1, 28, 28) to logits (B, 10)."""
    return Replicas(
        nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, 64),
            nn.LayerNorm(64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )
    )


def build_optimizer(model):
    """Return the optimizer over the parameters of all replicas."""
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


def shard(inputs, labels, rank):
    """Return the examples of a batch that one replica gets."""
    return inputs[rank::RANKS], labels[rank::RANKS]


def all_reduce(replicas):
    """Give every replica the mean of all their gradients."""
    for parameters in zip(*(replica.parameters() for replica in replicas), strict=True):
        mean = torch.stack([parameter.grad for parameter in parameters]).mean(dim=0)
        for parameter in parameters:
            parameter.grad.copy_(mean)


def train_step(model, optimizer, inputs, labels):
    """Make one step of all replicas on one batch and return the mean of their losses."""
    optimizer.zero_grad()
    losses = []
    for rank in range(RANKS):
        own, own_labels = shard(inputs, labels, rank)
        loss = compute_loss(model(own, rank), own_labels)
        loss.backward()
        losses.append(loss.detach())
    all_reduce(model.replicas)
    optimizer.step()
    return sum(losses) / RANKS


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
