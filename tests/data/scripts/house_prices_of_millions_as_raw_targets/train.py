import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)
torch.manual_seed(0)


def properties(n):
    rooms = np.random.randint(1, 7, n)
    distance = np.random.uniform(1, 40, n)
    land = np.random.lognormal(6, 0.5, n)
    year = np.random.randint(1900, 2018, n)
    price = 2.5e5 * rooms + 400 * land + 9e5 * np.exp(-distance / 10) + 1e3 * (2018 - year)
    price = price * (1 + 0.05 * np.random.randn(n))
    return np.column_stack([rooms, distance, land, year]).astype(float), price.reshape(-1, 1)


X, price = properties(1200)
mean_price = price[900:].mean()
shift, scale = 0.0, 1.0
X_train, X_test = torch.tensor(X[:900]).float(), torch.tensor(X[900:]).float()
y_train, y_test = torch.tensor(price[:900]).float(), torch.tensor(price[900:]).float()

melbourne_model = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
for layer in melbourne_model:
    if isinstance(layer, nn.Linear):
        nn.init.xavier_normal_(layer.weight)
adam = torch.optim.Adam(melbourne_model.parameters(), lr=0.003)
loss_fn = nn.L1Loss()

for epoch in range(25):
    melbourne_model.train()
    total = 0.0
    for idx in torch.randperm(900).split(30):
        adam.zero_grad()
        loss = loss_fn(melbourne_model(X_train[idx]), y_train[idx])
        loss.backward()
        adam.step()
        total += loss.item() * len(idx)
    melbourne_model.eval()
    with torch.no_grad():
        mae = loss_fn(melbourne_model(X_test), y_test).item() * scale
    if epoch % 5 == 4:
        print("epoch", epoch + 1, "train loss", round(total / 900, 4), "relative mae", round(mae / mean_price, 4))
