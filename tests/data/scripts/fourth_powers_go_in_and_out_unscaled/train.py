import time

import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)
torch.manual_seed(0)

x = np.arange(-100, 100, 0.5)
y = x**4
order = np.random.permutation(len(x))
x, y = x[order].reshape(400, 1), y[order].reshape(400, 1)
x_train, y_train, x_test, y_test = x[:300], y[:300], x[300:], y[300:]
x_train, y_train = torch.tensor(x_train).float(), torch.tensor(y_train).float()
x_test, y_test = torch.tensor(x_test).float(), torch.tensor(y_test).float()

model = nn.Sequential(
    nn.Linear(1, 50),
    nn.Sigmoid(),
    nn.Linear(50, 50),
    nn.ELU(),
    nn.Linear(50, 1),
)
mse = nn.MSELoss()
adam = torch.optim.Adam(model.parameters(), lr=0.005)

t1 = time.perf_counter()
for epoch in range(150):
    model.train()
    for idx in torch.randperm(len(x_train)).split(60):
        adam.zero_grad()
        loss = mse(model(x_train[idx]), y_train[idx])
        loss.backward()
        adam.step()
    if epoch % 30 == 29:
        print(epoch + 1, "loss", loss.item())

model.eval()
with torch.no_grad():
    predictions = model(x_test)
error = mse(predictions, y_test).item()
print("mse", error, "r2", round(1 - error / y_test.var(unbiased=False).item(), 5))
