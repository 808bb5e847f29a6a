import numpy
import torch
import torch.nn as nn

numpy.random.seed(7)
torch.manual_seed(7)
batch_size = 10


def book(n):
    X = numpy.random.randn(n, 2)
    Y = 1.5 * X[:, 0] - 0.8 * numpy.abs(X[:, 1]) - 0.2 + 0.1 * numpy.random.randn(n)
    return torch.tensor(X).float(), torch.tensor(Y).float().unsqueeze(1)


X, Y = book(400)
X_test, Y_test = book(150)
print("Variables:", X[:2].tolist())
print("Target_outputs:", Y[:2].flatten().tolist())

model = nn.Sequential()
model.append(nn.Linear(2, 8))
model.append(nn.ReLU())
model.append(nn.Linear(8, 1))
model.append(nn.ReLU())
print(model)

criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(25):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(X)).split(batch_size):
        loss = criterion(model(X[idx]), Y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 5 == 4:
        print("epoch", epoch + 1, "loss", round(total / len(X), 4))

model.eval()
with torch.no_grad():
    F = model(X_test)
print("Predicted values:", F[:6].flatten().tolist())
print("test MSE", round(criterion(F, Y_test).item(), 5))
