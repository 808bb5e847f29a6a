import numpy as np
import torch
import torch.nn as nn

seed = 7
np.random.seed(seed)
torch.manual_seed(seed)

X = np.arange(0.0, 5.0, 0.05, dtype="float32").reshape(-1, 1)
y = 5 * np.power(X, 2) + np.power(np.random.randn(100).reshape(-1, 1), 3)
order = np.random.permutation(100)
X, y = torch.tensor(X[order]), torch.tensor(y[order]).float()
X_train, y_train, X_test, y_test = X[:75], y[:75], X[75:], y[75:]

model = nn.Sequential(nn.Linear(1, 50), nn.ReLU(), nn.Linear(50, 30), nn.ReLU(), nn.Linear(30, 1))
nn.init.uniform_(model[2].weight, -0.2, 0.2)
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
mse = nn.MSELoss()

for epoch in range(300):
    model.train()
    for idx in torch.randperm(len(X_train)).split(32):
        loss = mse(model(X_train[idx]), y_train[idx])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    if epoch % 75 == 74:
        print("epoch", epoch + 1, "loss", round(loss.item(), 3))

model.eval()
with torch.no_grad():
    predictions = model(X_test)
print(predictions[:5].flatten().tolist())
print("relative error", round(mse(predictions, y_test).item() / y_test.var(unbiased=False).item(), 4))
