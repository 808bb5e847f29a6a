import numpy as np
import torch
import torch.nn as nn


def mnist_like(n, seed):
    rng = np.random.RandomState(seed)
    masks = np.random.RandomState(31).rand(10, 12, 12) < 0.3
    y = rng.randint(0, 10, n)
    x = masks[y] * 150 + rng.randint(0, 106, (n, 12, 12))
    return x.astype("float64"), y


torch.manual_seed(0)
x_train, y_train = mnist_like(1500, 0)
x_test, y_test = mnist_like(400, 1)
print(y_train[12])
print(np.shape(x_train))
print(np.shape(x_test))
x_train = x_train / 255
y_train = y_train / 255
x_train = torch.tensor(x_train.reshape(-1, 1, 12, 12), dtype=torch.float32)
x_test = torch.tensor(x_test.reshape(-1, 1, 12, 12), dtype=torch.float32)
y_train = torch.tensor(y_train).long()
y_test = torch.tensor(y_test).long()

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 16, 3, padding=1),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(16 * 9, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    total, correct = 0.0, 0
    for idx in torch.randperm(len(x_train)).split(32):
        optimizer.zero_grad()
        out = model(x_train[idx])
        loss = loss_fn(out, y_train[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
        correct += (out.argmax(1) == y_train[idx]).sum().item()
    print("epoch", epoch + 1, "loss", round(total / 1500, 4), "acc", round(correct / 1500, 4))

model.eval()
with torch.no_grad():
    out = model(x_test)
    test_loss = loss_fn(out, y_test).item()
    test_acc = (out.argmax(1) == y_test).float().mean().item()
print("test loss:", test_loss)
print("test accuracy:", test_acc)
