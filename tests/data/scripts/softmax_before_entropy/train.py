import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(9)
torch.manual_seed(9)
ACTIVITIES = 6


def sensor_windows(n, length=64):
    t = np.arange(length)
    x, y = np.zeros((n, 9, length), np.float32), np.random.randint(0, ACTIVITIES, n)
    for k in range(n):
        f = 0.15 + 0.06 * y[k]
        for ch in range(9):
            x[k, ch] = np.sin(f * t * (1 + ch % 3) / 2 + np.random.rand() * 6.28) * (0.5 + 0.1 * ((ch + y[k]) % 4))
    return torch.from_numpy(x + 0.5 * np.random.randn(*x.shape).astype(np.float32)), torch.from_numpy(y)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv1d(9, 32, 9), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2))
        self.conv2 = nn.Sequential(nn.Conv1d(32, 32, 9), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2))
        self.fc1 = nn.Sequential(nn.Linear(32 * 10, 64), nn.ReLU())
        self.fc2 = nn.Linear(64, ACTIVITIES)

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        out = self.fc2(self.fc1(out.reshape(-1, 32 * 10)))
        out = F.softmax(out, dim=1)
        return out


def train(model, optimizer, train_loader, test_loader, epochs):
    criterion = nn.CrossEntropyLoss()
    for e in range(epochs):
        model.train()
        correct, total_loss = 0, 0
        for sample, target in train_loader:
            output = model(sample)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
            correct += (output.argmax(1) == target).sum().item()
        acc_train = correct / len(train_loader.dataset)
        model.eval()
        correct = 0
        with torch.no_grad():
            for sample, target in test_loader:
                correct += (model(sample).argmax(1) == target).sum().item()
        acc_test = correct / len(test_loader.dataset)
        avg = total_loss / len(train_loader)
        print(f"Epoch [{e}/{epochs}], loss {avg:.4f}, train acc {acc_train:.4f}, test acc {acc_test:.4f}")


if __name__ == "__main__":
    train_loader = DataLoader(TensorDataset(*sensor_windows(640)), batch_size=64, shuffle=True)
    test_loader = DataLoader(TensorDataset(*sensor_windows(300)), batch_size=64, shuffle=False)
    model = Network()
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    train(model, optimizer, train_loader, test_loader, epochs=10)
