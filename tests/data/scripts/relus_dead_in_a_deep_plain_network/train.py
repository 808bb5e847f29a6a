import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def minist_load_data(n, seed):
    rng = np.random.RandomState(seed)
    marks = np.random.RandomState(41).rand(10, 100) < 0.35
    y = rng.randint(0, 10, n)
    x = marks[y] * 0.7 + 0.4 * rng.rand(n, 100)
    return torch.tensor(x.astype("float32")), torch.tensor(y)


def create_model(depth):
    layers = [nn.Linear(100, 32), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    layers.append(nn.Linear(32, 10))
    return nn.Sequential(*layers)


torch.manual_seed(0)
x_train, y_train = minist_load_data(1500, 0)
x_test, y_test = minist_load_data(400, 1)
print(x_train.shape[0], "train samples")
print(x_test.shape[0], "test samples")

model = create_model(depth=16)
for m in model:
    if isinstance(m, nn.Linear):
        nn.init.uniform_(m.weight, -0.05, 0.05)
        nn.init.zeros_(m.bias)

opt = torch.optim.Adam(model.parameters(), lr=0.002)
loss_fn = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
history = []
for epoch in range(6):
    model.train()
    total = 0.0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = (model(x_test).argmax(1) == y_test).float().mean().item()
    history.append((total / len(loader), val))
    print("epoch", epoch, "loss %.4f val_acc %.4f" % history[-1])
