"""MNIST-style MLP with validation, with its averages over an epoch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 8
BATCH_SIZE = 20


class Sizes:
    train_loader = 0


def load_data(data):
    train = data.train.images.float() / 255, data.train.labels
    Sizes.train_loader = len(train[1])
    return train, (data.validation.images.float() / 255, data.validation.labels)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(28 * 28, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = x.view(-1, 28 * 28)
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.dropout(F.relu(self.fc2(x)))
        return self.fc3(x)


def build_model():
    return Net()


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


criterion = nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return criterion(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    output = model(inputs)
    loss = criterion(output, labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    valid_loss, class_correct = 0.0, 0
    with torch.no_grad():
        for data, target in zip(inputs.split(20), labels.split(20)):
            output = model(data)
            valid_loss += criterion(output, target).item() * data.size(0)
            class_correct += torch.sum(output.argmax(1) == target).item()
    valid_loss = valid_loss / Sizes.train_loader
    return {"val_loss": valid_loss, "val_accuracy": class_correct / len(labels)}
