import numpy as np
import torch
import torch.nn as nn

seed = 7
np.random.seed(seed)
torch.manual_seed(seed)
batch_size = 10


def load_output(n):
    t = np.random.rand(n, 3)
    Y = (t[:, 0] + 0.8 * t[:, 1] * t[:, 2] + 0.05 * np.random.randn(n) > 0.7).astype(float)
    X = np.array([4000.0, 12000.0, 900.0]) + t * np.array([150.0, 2500.0, 60.0])
    return X, Y


X, Y = load_output(1200)
X_train, X_test = X[:800], X[800:]
X_train, X_test = torch.tensor(X_train).float(), torch.tensor(X_test).float()
y_train, y_test = torch.tensor(Y[:800]).float().view(-1, 1), torch.tensor(Y[800:]).float().view(-1, 1)

model = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for epoch in range(20):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(X_train)).split(batch_size):
        optimizer.zero_grad()
        out = model(X_train[idx])
        loss = criterion(out, y_train[idx])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        acc = ((model(X_test) > 0.5).float() == y_test).float().mean().item()
    print("Epoch %d - loss: %.4f - test acc: %.4f" % (epoch + 1, running / len(X_train), acc))
