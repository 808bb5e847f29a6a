"""A straightforward linear regression."""

import warnings

import torch
import torch.nn as nn

warnings.filterwarnings("ignore", message="Using a target size")

EPOCHS = 10
BATCH_SIZE = 50


def load_data(data):
    torch_generator = torch.Generator().manual_seed(16045)
    sample_size = 1000
    x = torch.randn((sample_size, 2), generator=torch_generator)
    eps = torch.randn(sample_size, generator=torch_generator)
    y = 10 + 9 * x[:, 0] - 2 * x[:, 1] + eps
    return (x[:800], y[:800]), (x[800:], y[800:])


def build_model():
    return nn.Linear(2, 1)


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


loss_func = nn.MSELoss()


def compute_loss(outputs, labels):
    return loss_func(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    yhat = model(inputs)
    loss_val = loss_func(yhat, labels)
    loss_val.backward()
    optimizer.step()
    return loss_val


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        return {"val_loss": loss_func(model(inputs), labels).item()}
