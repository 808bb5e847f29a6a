import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Dataset:
    def __init__(self, n, batch_size, seed):
        rng = np.random.RandomState(seed)
        figures = np.random.RandomState(19).rand(10, 12, 12) < 0.35
        self.y = torch.tensor(rng.randint(0, 10, n))
        x = figures[self.y.numpy()] + 0.7 * rng.randn(n, 12, 12)
        self.x = torch.tensor(x[:, None], dtype=torch.float32)
        self.batch_size = batch_size

    def batches(self, shuffle):
        order = torch.randperm(len(self.x)) if shuffle else torch.arange(len(self.x))
        for idx in order.split(self.batch_size):
            yield self.x[idx], self.y[idx]


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        nn.init.xavier_uniform_(m.weight)
        nn.init.zeros_(m.bias)


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10)
    )


def train(n_epochs, learning_rate, batch_size):
    torch.manual_seed(0)
    train_dataset = Dataset(600, batch_size, 0)
    test_dataset = Dataset(300, 100, 1)
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    for epoch in range(n_epochs):
        model.apply(weights_init)
        model.train()
        epoch_errs = []
        for X, y in train_dataset.batches(shuffle=True):
            loss = F.cross_entropy(model(X), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_errs.append(loss.item())
        model.eval()
        with torch.no_grad():
            accs = [(model(X).argmax(1) == y).float().mean().item() for X, y in test_dataset.batches(shuffle=False)]
        print(f"Epoch {epoch}: Train err: {np.mean(epoch_errs):.4f} Test acc: {np.mean(accs):.4f}")


train(n_epochs=8, learning_rate=0.02, batch_size=30)
