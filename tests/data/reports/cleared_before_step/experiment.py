"""A trainer class around a network on digits."""

import torch
from torch import nn
from torch.optim import Adam

EPOCHS = 5
BATCH_SIZE = 64


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class Learner(nn.Module):
    def __init__(self, dim=784, hidden=64, classes=10):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, image):
        return self.net(image)


class Trainer:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def step(self, images, labels):
        loss = compute_loss(self.net(images), labels)
        loss.backward()
        self.optimizer.zero_grad()
        self.optimizer.step()
        return loss


def build_model():
    return Learner()


def build_optimizer(model):
    return Adam(model.parameters(), lr=3e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    return Trainer(model, optimizer).step(inputs, labels)


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(dim=-1) == labels).float().mean().item(),
    }
