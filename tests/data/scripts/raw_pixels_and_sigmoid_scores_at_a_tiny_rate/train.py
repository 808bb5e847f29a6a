import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
batch_size = 32
epochs = 10
alpha = 0.0001
h1 = 50


def read_csv(n, seed):
    rng = np.random.RandomState(seed)
    shapes = np.random.RandomState(23).rand(10, 196) < 0.3
    label = rng.randint(0, 10, n)
    pixels = np.where(shapes[label], rng.randint(120, 256, (n, 196)), rng.randint(0, 60, (n, 196)))
    noisy = rng.rand(n, 196) < 0.35
    pixels[noisy] = rng.randint(0, 256, noisy.sum())
    return np.column_stack([label, pixels])


train, test = read_csv(1600, 1), read_csv(400, 2)
y_train = train[:, 0]
x_train = train[:, 1:]
y_test = test[:, 0]
x_test = test[:, 1:]
x_train, x_test = torch.tensor(x_train).float(), torch.tensor(x_test).float()
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)

model = nn.Sequential(
    nn.Linear(196, 196),
    nn.Linear(196, h1),
    nn.ReLU(),
    nn.Linear(h1, 10),
    nn.Sigmoid(),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=alpha)

for epoch in range(epochs):
    model.train()
    order = torch.randperm(len(x_train))
    total = 0.0
    for idx in order.split(batch_size):
        optimizer.zero_grad()
        loss = criterion(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        acc = (model(x_test).argmax(1) == y_test).float().mean().item()
    print("Epoch %d/%d loss: %.4f test acc: %.4f" % (epoch + 1, epochs, total / len(x_train), acc))
