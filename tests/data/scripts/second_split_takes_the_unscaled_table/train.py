import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(2)


def load_flowers(n=240):
    rng = np.random.RandomState(0)
    means = np.array([[50.0, 34.0, 14.6, 2.4], [59.0, 27.7, 42.6, 13.3], [65.9, 29.7, 55.5, 20.3]])
    target = rng.randint(0, 3, n)
    return means[target] + rng.randn(n, 4) * np.array([4.5, 3.2, 3.5, 2.2]), target


def train_test_split(X, y, test_size, random_state):
    order = np.random.RandomState(random_state).permutation(len(X))
    cut = int(len(X) * (1 - test_size))
    a, b = order[:cut], order[cut:]
    return (
        torch.tensor(X[a]).float(),
        torch.tensor(X[b]).float(),
        torch.tensor(y[a]).long(),
        torch.tensor(y[b]).long(),
    )


X, y = load_flowers()
rows = np.random.RandomState(2).permutation(len(X))[: len(X) // 2]
X_scaled = (X - X[rows].mean(axis=0)) / X[rows].std(axis=0)
X_train, X_test, Y_train, Y_test = train_test_split(X_scaled, y, test_size=0.5, random_state=2)
n_features = X_train.shape[1]
n_classes = 3
print(n_features, n_classes)

X_train, X_test, Y_train, Y_test = train_test_split(X, y, test_size=0.5, random_state=2)
n_features = X_train.shape[1]

model = nn.Sequential(
    nn.Linear(n_features, 8),
    nn.ReLU(),
    nn.Linear(8, n_classes),
    nn.Sigmoid(),
)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(40):
    model.train()
    for idx in torch.randperm(len(X_train)).split(10):
        optimizer.zero_grad()
        loss = loss_fn(model(X_train[idx]), Y_train[idx])
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        print("epoch", epoch + 1, "loss", loss.item())

model.eval()
with torch.no_grad():
    out = model(X_test)
print("Test loss:", loss_fn(out, Y_test).item())
print("Test accuracy:", (out.argmax(1) == Y_test).float().mean().item())
