import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.pool = nn.MaxPool2d(2)
        self.dense = nn.Linear(16 * 4, 64)
        self.dropout = nn.Dropout(0.25)
        self.logits = nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.dropout(torch.relu(self.dense(x.flatten(1))))
        return self.logits(x)


def init_weights(module):
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.constant_(module.weight, 0.02)
        nn.init.zeros_(module.bias)


def dataset(n, seed):
    rng = np.random.RandomState(seed)
    kinds = np.random.RandomState(77).rand(10, 14, 14) < 0.3
    y = rng.randint(0, 10, n)
    x = kinds[y] + 0.4 * rng.randn(n, 14, 14)
    return TensorDataset(torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y))


def run(model, loader, optimizer=None):
    model.train(optimizer is not None)
    err, acc, count = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            err += loss.item() * len(y)
            acc += (out.argmax(1) == y).sum().item()
            count += len(y)
    return err / count, acc / count


def train(n_epochs, learning_rate, batch_size):
    torch.manual_seed(0)
    train_loader = DataLoader(dataset(1500, 0), batch_size=batch_size, shuffle=True)
    test_loader = DataLoader(dataset(400, 1), batch_size=200)
    model = Lenet()
    model.apply(init_weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for epoch in range(n_epochs):
        err, acc = run(model, train_loader, optimizer)
        print(f"Epoch {epoch}: Train err: {err:.4f} Train acc: {acc:.4f}")
        err, acc = run(model, test_loader)
        print(f"Epoch {epoch}: Test err: {err:.4f} Test acc: {acc:.4f}")


train(n_epochs=6, learning_rate=0.003, batch_size=50)
