import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def fake_mnist(n, seed):
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(0).random((10, 16, 16)) > 0.7
    labels = rng.integers(0, 10, n)
    x = base[labels] * 1.0 + 0.6 * rng.standard_normal((n, 16, 16))
    return TensorDataset(torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(labels))


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3)
        self.fc1 = nn.Linear(16 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(torch.max_pool2d(self.conv1(x), 2))
        x = torch.relu(torch.max_pool2d(self.conv2(x), 2))
        x = torch.relu(self.fc1(x.view(x.size(0), -1)))
        return self.fc2(x)


def train_model(model, optimizer, train_loader, num_epochs, criterion=nn.CrossEntropyLoss()):
    model.train()
    running_loss = 0
    correct = 0
    total = 0

    for epoch in range(num_epochs):
        for i, (x_train, y_train) in enumerate(train_loader):
            x_train = x_train.to(device)
            y_train = y_train.to(device)

            y_pred = model(x_train)
            loss = criterion(y_pred, y_train)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            running_loss += loss.item()
            _, predicted = y_pred.max(1)
            total += y_train.size(0)
            correct += predicted.eq(y_train).sum().item()

        train_loss = running_loss / len(train_loader)
        train_accu = 100.0 * correct / total
        print("Train Loss: %.3f | Train Accuracy: %.3f" % (train_loss, train_accu))


def test_model(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += model(x.to(device)).argmax(1).eq(y.to(device)).sum().item()
    print("Test Accuracy: %.3f" % (100.0 * correct / len(loader.dataset)))


train_loader = DataLoader(fake_mnist(2000, 1), batch_size=64, shuffle=True)
test_loader = DataLoader(fake_mnist(500, 2), batch_size=250)

model = Net().to(device)
optimizer = optim.Adam(model.parameters(), lr=2e-3)
train_model(model, optimizer, train_loader, 8)
test_model(model, test_loader)
