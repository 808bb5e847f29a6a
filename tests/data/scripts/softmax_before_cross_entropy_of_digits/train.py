import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

DIGITS = [
    "111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
    "111100111001111", "111100111101111", "111001001001001", "111101111101111", "111101111001111",
]


def draw_digits(n, seed):
    g = torch.Generator().manual_seed(seed)
    font = torch.tensor([[float(c) for c in d] for d in DIGITS]).view(10, 5, 3)
    labels = torch.randint(0, 10, (n,), generator=g)
    canvas = torch.zeros(n, 12, 12)
    big = font[labels].repeat_interleave(2, 1)
    for i in range(n):
        dy, dx = torch.randint(0, 3, (1,), generator=g).item(), torch.randint(2, 8, (1,), generator=g).item()
        canvas[i, dy : dy + 10, dx : dx + 3] = big[i]
    return (canvas + 0.2 * torch.randn(n, 12, 12, generator=g)).unsqueeze(1), labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(24 * 9, 64)
        self.fc2 = nn.Linear(64, 10)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.softmax(self.fc2(x))


def main():
    torch.manual_seed(0)
    x, y = draw_digits(1600, 0)
    xv, yv = draw_digits(300, 1)
    mean, std = x.mean(), x.std()
    train_loader = DataLoader(TensorDataset((x - mean) / std, y), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset((xv - mean) / std, yv), batch_size=100)

    net = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.03, momentum=0.9)

    for epoch in range(8):
        net.train()
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()

        net.eval()
        correct = total = 0
        with torch.no_grad():
            for inputs, labels in val_loader:
                _, predicted = torch.max(net(inputs), 1)
                total += labels.size(0)
                correct += (predicted == labels).sum().item()
        print(f"Epoch {epoch + 1}: loss {running_loss / len(train_loader):.3f}, accuracy {correct / total:.3f}")
    print(f"Finished training, accuracy {correct / total:.3f}")


if __name__ == "__main__":
    main()
