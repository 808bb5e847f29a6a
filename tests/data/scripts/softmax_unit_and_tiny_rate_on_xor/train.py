import numpy
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

numpy.random.seed(8)
torch.manual_seed(8)

table = numpy.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
answer = numpy.array([[0.0], [0.0], [1.0], [1.0], [0.0], [0.0]])


def jitter(times):
    X = numpy.repeat(table, times, axis=0)
    X = X + 0.1 * numpy.random.randn(*X.shape)
    y = numpy.repeat(answer, times, axis=0)
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


X, y = jitter(20)
X_test, y_test = jitter(30)
loader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True)

model = nn.Sequential()
model.add_module("dense1", nn.Linear(2, 2))
model.add_module("act1", nn.Sigmoid())
model.add_module("dense2", nn.Linear(2, 3))
model.add_module("act2", nn.Sigmoid())
model.add_module("dense3", nn.Linear(3, 1))
model.add_module("act3", nn.Softmax(dim=1))

sgd = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, nesterov=True)
criterion = nn.MSELoss()
nb_epoch = 20
for epoch in range(nb_epoch):
    model.train()
    for xb, yb in loader:
        sgd.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        sgd.step()
    if epoch % 5 == 4:
        print("epoch", epoch + 1, "loss", loss.item())

model.eval()
with torch.no_grad():
    print(model(torch.tensor([[1.0, 0.0]])))
    print(model(torch.tensor([[0.0, 0.0]])))
    predicted = (model(X_test) > 0.5).float()
print("accuracy", (predicted == y_test).float().mean().item())
