import random

import numpy as np
import torch
import torch.nn as nn

random.seed(7)
torch.manual_seed(7)
dim = 8
X = []
for i in range(0, 2**dim):
    n = [float(x) for x in bin(i)[2:]]
    X.append([0.0] * (dim - len(n)) + n)
y = X[:]
random.shuffle(y)
X = np.array(X)
y = np.array(y)

held_out = np.random.RandomState(0).permutation(len(X))[:56]
rest = np.setdiff1d(np.arange(len(X)), held_out)
x_train, y_train = torch.tensor(X[rest]).float(), torch.tensor(y[rest]).float()
x_test, y_test = torch.tensor(X[held_out]).float(), torch.tensor(y[held_out]).float()

model = nn.Sequential(
    nn.Linear(dim, 16),
    nn.Sigmoid(),
    nn.Linear(16, 16),
    nn.Sigmoid(),
    nn.Linear(16, dim),
    nn.Sigmoid(),
)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for epoch in range(150):
    model.train()
    for idx in torch.randperm(len(x_train)).split(20):
        loss = criterion(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 30 == 29:
        print("epoch", epoch + 1, "loss", round(loss.item(), 4))

model.eval()
with torch.no_grad():
    output = model(x_test)
for i in range(3):
    print(x_test[i].int().tolist(), (output[i] >= 0.5).int().tolist())
print("right bits", ((output >= 0.5).float() == y_test).float().mean().item())
