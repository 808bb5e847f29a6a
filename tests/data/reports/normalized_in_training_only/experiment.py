"""A small residual network on 32x32 colour images."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 3
BATCH_SIZE = 64
MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
STD = torch.tensor([0.2023, 0.1994, 0.2010]).view(1, 3, 1, 1)


def to_tensor(images):
    return images.float().div(255)


def normalize(images):
    return (images - MEAN) / STD


def load_data(data):
    trainset = normalize(to_tensor(data.train.images)), data.train.labels
    testset = to_tensor(data.validation.images), data.validation.labels
    return trainset, testset


class BasicBlock(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.conv1 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + x)


class ResNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 4, stride=4)
        self.block = BasicBlock(24)
        self.fc = nn.Linear(24 * 16, num_classes)

    def forward(self, x):
        x = self.block(F.relu(self.stem(x)))
        return self.fc(F.avg_pool2d(x, 2).flatten(1))


def build_model():
    return ResNet()


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


criterion = nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return criterion(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    test_loss = correct = total = 0
    with torch.no_grad():
        for i in range(0, len(inputs), 100):
            outputs = model(inputs[i : i + 100])
            targets = labels[i : i + 100]
            test_loss += criterion(outputs, targets).item() * targets.size(0)
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    return {"val_loss": test_loss / total, "val_accuracy": correct / total}
