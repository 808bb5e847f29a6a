"""The convolutional network of the Keras examples, smaller, on digits."""

import torch
from torch import nn

EPOCHS = 12
BATCH_SIZE = 64


def load_data(data):
    x_train, x_test = data.train.images.float(), data.validation.images.float()
    x_train /= 255
    x_test /= 255
    return (x_train, data.train.labels), (x_test, data.validation.labels)


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, kernel_size=4, stride=4),
        nn.ReLU(),
        nn.Conv2d(8, 16, kernel_size=3),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 64),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(64, 10),
    )


def build_optimizer(model):
    return torch.optim.Adadelta(model.parameters(), lr=0.001, rho=0.95, eps=1e-7)


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


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    score = model(inputs)
    return {
        "val_loss": compute_loss(score, labels).item(),
        "val_accuracy": (score.argmax(dim=1) == labels).float().mean().item(),
    }
