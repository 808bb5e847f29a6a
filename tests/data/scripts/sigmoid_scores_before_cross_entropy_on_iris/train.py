import numpy
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

seed = 7
numpy.random.seed(seed)
torch.manual_seed(seed)


def flowers(n):
    kind = numpy.random.randint(0, 3, n)
    middle = numpy.array([[5.0, 3.4, 1.5, 0.3], [5.9, 2.8, 4.2, 1.3], [6.6, 3.0, 5.6, 2.0]])
    return middle[kind] + numpy.random.randn(n, 4) * [0.4, 0.3, 0.4, 0.25], kind


X, Y = flowers(270)
train_x, test_x = X[:180], X[180:]
train_x, test_x = torch.tensor(train_x).float(), torch.tensor(test_x).float()
train_y, test_y = torch.tensor(Y[:180]), torch.tensor(Y[180:])

model = nn.Sequential()
model.add_module("hidden", nn.Linear(4, 4))
model.add_module("relu", nn.ReLU())
model.add_module("output", nn.Linear(4, 3))
model.add_module("sigmoid", nn.Sigmoid())
for m in model.modules():
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, std=0.05)
        nn.init.zeros_(m.bias)

estimator = torch.optim.Adam(model.parameters(), lr=0.001)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=5, shuffle=True)

for epoch in range(8):
    model.train()
    total = 0.0
    for features, label in loader:
        loss = criterion(model(features), label)
        estimator.zero_grad()
        loss.backward()
        estimator.step()
        total += loss.item()
    if epoch % 2 == 1:
        print("epoch", epoch + 1, "loss", round(total / len(loader), 4))

model.eval()
with torch.no_grad():
    hits = (model(test_x).argmax(1) == test_y).float().mean().item()
print("accuracy =", round(hits, 4))
