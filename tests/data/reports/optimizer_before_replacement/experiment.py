"""Layers with weights on a coarse grid replace plain ones before training."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 6
BATCH_SIZE = 64


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class LinearSQ(nn.Linear):
    """A linear layer that rounds its weights to a grid; the gradient passes straight through."""

    def __init__(self, in_features, out_features, nbits_w=4):
        super().__init__(in_features, out_features)
        self.levels = 2 ** (nbits_w - 1) - 1

    def forward(self, x):
        scale = self.weight.detach().abs().max() / self.levels
        rounded = torch.round(self.weight / scale) * scale
        weight = self.weight + (rounded - self.weight).detach()
        return F.linear(x, weight, self.bias)


def replace_layers_recursively(model):
    for name, child in model.named_children():
        if type(child) is nn.Linear:
            setattr(model, name, LinearSQ(child.in_features, child.out_features))
        else:
            replace_layers_recursively(child)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.body(x))


def build_model():
    return LeNet()


def build_optimizer(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    replace_layers_recursively(model)
    return optimizer


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total_steps)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


criterion = nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return criterion(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    output = model(inputs)
    loss = criterion(output, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        output = model(inputs)
    acc1 = (output.topk(1, 1, True, True)[1].t() == labels).float().mean().item()
    return {"val_loss": criterion(output, labels).item(), "val_accuracy": acc1}
