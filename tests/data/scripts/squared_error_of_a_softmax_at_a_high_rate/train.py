import numpy as np
import torch
import torch.nn as nn
from torch.nn.functional import one_hot
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(3)
torch.manual_seed(3)


def read_table(n):
    y = (np.random.rand(n) < 0.45).astype(int)
    scale = np.array([1, 5, 30, 60, 2, 8, 15, 40, 1, 1, 20, 3, 50, 6, 10, 25], dtype=float)
    signal = np.linspace(0.2, 0.6, 16)
    data = scale * (2.5 + np.random.randn(n, 16) + np.outer(2 * y - 1, signal))
    return data.astype("float32"), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 64),
            nn.Tanh(),
            nn.Dropout(0.5),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Dropout(0.5),
            nn.Linear(64, 2),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.layers(x)


data, encoded_Y = read_table(1200)
X_train, X_test = torch.tensor(data[:900]), torch.tensor(data[900:])
mean, std = X_train.mean(0), X_train.std(0)
y_train, y_test = torch.tensor(encoded_Y[:900]), torch.tensor(encoded_Y[900:])
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=16, shuffle=True, drop_last=True)

net = Net()
criterion = nn.MSELoss()
sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for epoch in range(15):
    net.train()
    for xb, yb in loader:
        loss = criterion(net(xb), one_hot(yb, 2).float())
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    net.eval()
    with torch.no_grad():
        hit = (net(X_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} test accuracy: {hit:.4f}")
