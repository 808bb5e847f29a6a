import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def make_multilabel(n_samples, n_features=20, n_classes=3, seed=0):
    rng = np.random.RandomState(seed)
    topics = np.random.RandomState(99).gamma(0.6, 1.0, (n_classes, n_features))
    Y = (rng.rand(n_samples, n_classes) < 0.5).astype(np.float32)
    X = rng.poisson(2 + 5 * Y @ topics).astype(np.float32)
    return torch.tensor(np.log1p(X) - 1.5), torch.tensor(Y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 40)
        self.fc2 = nn.Linear(40, 40)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(40, 3)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(x)))
        x = self.drop(F.relu(self.fc2(x)))
        return torch.softmax(self.out(x), dim=1)


X_train, y_train = make_multilabel(2000, seed=1)
X_test, y_test = make_multilabel(500, seed=2)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=20, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        labels = (model(X_test) > 0.5).float()
    exact = (labels == y_test).all(1).float().mean().item()
    print(f"epoch {epoch} loss {total / len(loader):.4f} exact match {exact:.4f}")
