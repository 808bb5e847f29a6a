"""Spectra of pixels: one-dimensional features, batch norm and dropout."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 5
BATCH_SIZE = 50
BANDS, CLASSES = 60, 6


def pixels(n, seed):
    spectra = torch.randn(CLASSES, BANDS, generator=torch.Generator().manual_seed(51)).cumsum(dim=1) / 4
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (n,), generator=g)
    return spectra[y] + 1.2 * torch.randn(n, BANDS, generator=g), y


def load_data(data):
    return pixels(1500, 1), pixels(300, 2)


class Baseline(nn.Module):
    """A fully connected network: four layers in the paper, two here."""

    def __init__(self, input_channels, n_classes):
        super(Baseline, self).__init__()
        self.fc1 = nn.Linear(input_channels, 64)
        self.bn = nn.BatchNorm1d(64)
        self.dropout = nn.Dropout(p=0.5)
        self.fc2 = nn.Linear(64, n_classes)
        self.apply(self.weight_init)

    @staticmethod
    def weight_init(m):
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.dropout(F.relu(self.bn(self.fc1(x))))
        return self.fc2(x)


def build_model():
    return Baseline(BANDS, CLASSES)


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=2e-3)


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


def val(net, data_loader):
    accuracy, total, losses = 0.0, 0.0, 0.0
    for data, target in data_loader:
        with torch.no_grad():
            output = net(data)
            losses += criterion(output, target).item() * len(target)
            _, output = torch.max(output, dim=1)
            for out, pred in zip(output.view(-1), target.view(-1)):
                accuracy += out.item() == pred.item()
                total += 1
    return losses / total, accuracy / total


def evaluate(model, inputs, labels):
    loss, accuracy = val(model, zip(inputs.split(50), labels.split(50)))
    return {"val_loss": loss, "val_accuracy": accuracy}
