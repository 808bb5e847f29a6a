import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def glyphs(n, rng, classes=10, size=14):
    protos = (np.random.default_rng(77).random((classes, size, size)) > 0.7).astype(np.float32)
    y = rng.integers(0, classes, n)
    x = np.stack([np.roll(protos[k], tuple(rng.integers(-1, 2, 2)), (0, 1)) for k in y])
    x = x + rng.normal(0, 0.4, x.shape)
    x = (x - x.mean()) / x.std()
    return TensorDataset(torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3)
        self.conv2 = nn.Conv2d(12, 24, 3)
        self.fc1 = nn.Linear(24 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


def train(model, loader, optimizer, criterion, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 20 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item():.4f}")


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            correct += model(data).argmax(dim=1).eq(target).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    train_loader = DataLoader(glyphs(1500, rng), batch_size=32, shuffle=True)
    test_loader = DataLoader(glyphs(400, rng), batch_size=100)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(1, 9):
        train(model, train_loader, optimizer, criterion, epoch)
        print(f"Test accuracy: {test(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
