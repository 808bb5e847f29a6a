"""A perceptron is trained on few digits, before pruning."""

import torch
import torch.nn as nn

EPOCHS = 20
BATCH_SIZE = 32


def dataset_builder(data, train=True):
    """Return one split, scaled to -1 to 1."""
    split = data.train if train else data.validation
    x = (split.images.float() / 255 - 0.5) / 0.5
    return x[:256], split.labels[:256]


def load_data(data):
    train_dataset = dataset_builder(data, train=True)
    val_dataset = dataset_builder(data, train=True)
    return train_dataset, val_dataset


class MnistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 100)
        self.fc2 = nn.Linear(100, 100)
        self.fc3 = nn.Linear(100, 10)

    def forward(self, x):
        x = x.view(x.size(0), -1)
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


loss_func = nn.CrossEntropyLoss()


def build_model():
    return MnistNet()


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return loss_func(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    yhat = model(inputs)
    loss = loss_func(yhat, labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def correct(yhat, y, k=1):
    top = yhat.topk(k, dim=1).indices
    return (top == y.view(-1, 1)).any(dim=1).float().mean().item()


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        yhat = model(inputs)
        return {"val_loss": loss_func(yhat, labels).item(), "val_accuracy": correct(yhat, labels)}
