"""A convolutional network without batch norm on 32x32 colour images."""

import torch
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64

mean = [x / 255 for x in [0.507, 0.487, 0.441]]
std = [x / 255 for x in [0.267, 0.256, 0.276]]


def transform(pictures):
    """ToTensor, then Normalize."""
    tensor = pictures.float() / 255
    shape = (1, 3, 1, 1)
    return (tensor - torch.tensor(mean).view(shape)) / torch.tensor(std).view(shape)


def load_data(data):
    train = transform(data.train.images), data.train.labels
    test = transform(data.validation.images), data.validation.labels
    return train, test


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 16, kernel_size=4, stride=4),
        nn.ReLU(inplace=True),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(inplace=True),
        nn.Linear(64, 10),
    )


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=total_steps + 1)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    out = model(inputs)
    loss = compute_loss(out, labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = [model(part) for part in inputs.split(128)]
    outputs = torch.cat(outputs)
    accuracy = torch.tensor((outputs.argmax(1) == labels).sum().item() / len(labels))
    return {"val_loss": compute_loss(outputs, labels), "val_accuracy": accuracy}
