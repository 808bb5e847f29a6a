import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)


def load_data(n, seed):
    rng = np.random.RandomState(seed)
    textures = np.random.RandomState(5).randint(0, 256, (10, 12, 12, 3))
    y = rng.randint(0, 10, n)
    x = 0.45 * textures[y] + 0.55 * rng.randint(0, 256, (n, 12, 12, 3))
    return x.astype("uint8"), y


def prepare(x, y):
    return torch.tensor(x).permute(0, 3, 1, 2).float(), torch.tensor(y)


x_train, y_train = prepare(*load_data(1500, 0))
x_test, y_test = prepare(*load_data(400, 1))
print("x_train shape:", tuple(x_train.shape))

model = nn.Sequential(
    nn.Conv2d(3, 24, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(24, 48, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(48 * 9, 64),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(64, 10),
)
for m in model:
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
for epoch in range(6):
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
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print("epoch", epoch + 1, "loss:", round(total / len(loader), 4), "accuracy:", round(accuracy, 4))
