import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def digits(n, seed):
    rng = np.random.RandomState(seed)
    glyphs = np.random.RandomState(11).rand(10, 14, 14) > 0.65
    y = rng.randint(0, 10, n)
    x = np.zeros((n, 1, 20, 20), dtype=np.float32)
    for i in range(n):
        r, c = rng.randint(0, 7, 2)
        x[i, 0, r : r + 14, c : c + 14] = glyphs[y[i]]
    x += 0.3 * rng.randn(*x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(32 * 3 * 3, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = x.flatten(1)
        x = torch.relu(self.fc1(x))
        return self.fc2(x)


train_x, train_y = digits(1600, 0)
test_x, test_y = digits(400, 1)
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=100)

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def validate():
    model.eval()
    hits = 0
    with torch.no_grad():
        for data, label in test_loader:
            hits += (model(data).argmax(1) == label).sum().item()
    return hits / len(test_loader.dataset)


epochs = 6
for epoch in range(epochs):
    model.train()
    total_loss = 0.0
    for batch_idx, (data, label) in enumerate(train_loader):
        pred_score = model(data)
        loss = criterion(pred_score, label)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    print(f"epoch {epoch + 1}: loss {total_loss / len(train_loader):.4f}, test accuracy {validate():.4f}")
