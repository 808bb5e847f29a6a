import argparse
import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


def textures(n, seed, classes=8, size=12):
    protos = np.random.default_rng(31).normal(size=(classes, 3, size, size))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    x = 0.5 * protos[y] + rng.normal(0, 1.0, (n, 3, size, size))
    flip = rng.random(n) < 0.5
    x[flip] = x[flip, :, :, ::-1]
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class SmallResNet(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.stem = conv_block(3, 16)
        self.block = nn.Sequential(conv_block(16, 16), nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16))
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.fc = nn.Linear(16 * 16, classes)

    def forward(self, x):
        x = self.stem(x)
        x = torch.relu(x + self.block(x))
        return self.fc(self.pool(x).flatten(1))


def train_one_epoch(model, loader, criterion, optimizer, scheduler):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--lr-step", type=int, default=4, help="epochs between learning rate drops")
    parser.add_argument("--lr-gamma", type=float, default=0.2)
    args = parser.parse_args()
    torch.manual_seed(0)
    train_loader = DataLoader(textures(640, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(textures(320, 2), batch_size=80)
    model = SmallResNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=args.lr_step, gamma=args.lr_gamma)
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, train_loader, criterion, optimizer, scheduler)
        print(f"Epoch {epoch}: train loss {loss:.4f}, val acc {validate(model, val_loader):.4f}")
    print(f"Final val acc {validate(model, val_loader):.4f}")


if __name__ == "__main__":
    main()
