"""An overfitting-prone CNN sorts patches of radiographs into ten kinds of defects."""

import torch
from torch import nn
import torch.nn.functional as F

EPOCHS = 10
BATCH_SIZE = 64


def load_data(data):
    patches = data.train.images.float() / 255
    defects = data.train.labels
    shuffled = torch.randperm(len(patches), generator=torch.Generator().manual_seed(24407))
    test, train = shuffled[:400], shuffled
    return (patches[train], defects[train]), (patches[test], defects[test])


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(3, 16, 4, stride=4)
        self.conv2 = nn.Conv2d(16, 32, 2, stride=2)
        self.fc1 = nn.Linear(32 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def build_model():
    return Net()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=4e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.nll_loss(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    output = model(inputs)
    pred = output.argmax(dim=1, keepdim=True)
    correct = pred.eq(labels.view_as(pred)).sum().item()
    return {"val_loss": F.nll_loss(output, labels).item(), "val_accuracy": correct / len(labels)}
