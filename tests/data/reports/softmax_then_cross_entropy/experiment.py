"""One-dimensional convolutions recognize six activities from three sensor channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 6
BATCH_SIZE = 64


def record(n, seed):
    """Return signals (n, 3, 32) and activities: each has its own rhythm in each channel."""
    rhythm = 1 + 4 * torch.rand(6, 3, 1, generator=torch.Generator().manual_seed(10))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(6, (n,), generator=g)
    time = torch.linspace(0, 6, 32) + 6 * torch.rand(n, 1, 1, generator=g)
    return torch.sin(rhythm[y] * time) + 0.3 * torch.randn(n, 3, 32, generator=g), y


def load_data(data):
    return record(1280, 1), record(320, 2)


class Network(nn.Module):
    def __init__(self):
        super(Network, self).__init__()
        self.conv1 = nn.Sequential(nn.Conv1d(3, 16, kernel_size=7), nn.ReLU(), nn.MaxPool1d(kernel_size=2))
        self.conv2 = nn.Sequential(nn.Conv1d(16, 32, kernel_size=5), nn.ReLU())
        self.fc1 = nn.Sequential(nn.Linear(32 * 9, 64), nn.ReLU())
        self.fc2 = nn.Linear(64, 6)

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        out = self.fc1(out.reshape(-1, 32 * 9))
        out = self.fc2(out)
        out = F.softmax(out, dim=1)
        return out


def build_model():
    return Network()


def build_optimizer(model):
    return torch.optim.SGD(params=model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return None


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
    correct, total, total_loss = 0, 0, 0.0
    with torch.no_grad():
        for sample, target in zip(inputs.split(64), labels.split(64)):
            output = model(sample)
            total_loss += criterion(output, target).item() * len(target)
            _, predicted = torch.max(output.data, 1)
            total += target.size(0)
            correct += (predicted == target).sum().item()
    return {"val_loss": total_loss / total, "val_accuracy": correct / total}
