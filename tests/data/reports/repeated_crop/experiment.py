"""Digits with a random crop; each batch is made by a fresh worker, as a data loader with one batch a worker does."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 8
BATCH_SIZE = 64
SEED = 317
PAD = 4


def load_data(data):
    normalize = lambda images: (images.float() / 255 - 0.1307) / 0.3081
    return (normalize(data.train.images), data.train.labels), (normalize(data.validation.images), data.validation.labels)


def start_worker(worker_id):
    """Return the random generator of a worker."""
    return np.random.RandomState(SEED)


def prepare_batch(inputs, labels, rng):
    worker_id = int(torch.randint(2**20, (1,), generator=rng))
    random = start_worker(worker_id)
    top, left = random.randint(0, 2 * PAD + 1, size=2)
    height, width = inputs.shape[-2:]
    padded = F.pad(inputs, (PAD, PAD, PAD, PAD), value=float(inputs.min()))
    return padded[..., top : top + height, left : left + width], labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 4, stride=3)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
        self.fc1 = nn.Linear(16 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(x), dim=1)


def build_model():
    return Net()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=4e-3)


def build_scheduler(optimizer, total_steps):
    return None


def compute_loss(outputs, labels):
    return F.nll_loss(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = F.nll_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    output = model(inputs)
    pred = output.max(1, keepdim=True)[1]
    return {
        "val_loss": F.nll_loss(output, labels).item(),
        "val_accuracy": pred.eq(labels.view_as(pred)).float().mean().item(),
    }
