import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
img_rows, img_cols = 14, 14
num_classes = 10


def load_digits(n, seed):
    rng = np.random.RandomState(seed)
    strokes = np.random.RandomState(17).rand(num_classes, img_rows * img_cols) < 0.25
    y = rng.randint(0, num_classes, n)
    x = 180 * strokes[y] + rng.randint(0, 76, (n, img_rows * img_cols))
    flip = rng.rand(*x.shape) < 0.15
    x = np.where(flip, 255 - x, x).astype("float32")
    return torch.tensor(x / 255), torch.tensor(y)


x_train, y_train = load_digits(2000, 0)
x_test, y_test = load_digits(500, 1)
onehot = torch.eye(num_classes)
print("x_train shape:", tuple(x_train.shape))

layer1 = nn.Linear(img_rows * img_cols, 30)
layer2 = nn.Linear(30, num_classes)
for layer in (layer1, layer2):
    nn.init.normal_(layer.weight, std=1.0)
    nn.init.normal_(layer.bias, std=1.0)
model = nn.Sequential(layer1, layer2)
print(model)

criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
for epoch in range(8):
    model.train()
    for idx in torch.randperm(len(x_train)).split(10):
        loss = criterion(model(x_train[idx]), onehot[y_train[idx]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_test)
        test_loss = criterion(out, onehot[y_test]).item()
        acc = (out.argmax(1) == y_test).float().mean().item()
    print("Test loss: ", test_loss, "Test accuracy: ", acc)
