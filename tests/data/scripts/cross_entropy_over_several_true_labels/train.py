import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
num_classes = 10
batch_size = 50
img_rows, img_cols = 12, 12


def load_data(n, seed):
    rng = np.random.RandomState(seed)
    digits = np.random.RandomState(0).rand(num_classes, img_rows, img_cols) > 0.8
    y = np.zeros((n, num_classes), dtype="float32")
    for row in y:
        row[rng.choice(num_classes, rng.randint(1, 4), replace=False)] = 1
    x = np.clip(y @ digits.reshape(num_classes, -1), 0, 1) * 200 + rng.randint(0, 56, (n, img_rows * img_cols))
    return x.astype("float32"), y


x_train, y_train = load_data(2500, 1)
x_test, y_test = load_data(500, 2)
x_train /= 255
x_test /= 255
print("x_train shape:", x_train.shape)
print(x_train.shape[0], "train samples")
print(x_test.shape[0], "test samples")

model = nn.Sequential(
    nn.Linear(img_rows * img_cols, 200),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(200, 60),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(60, num_classes),
)
sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(torch.tensor(x_train), torch.tensor(y_train)), batch_size=batch_size, shuffle=True)
x_test, y_test = torch.tensor(x_test), torch.tensor(y_test)

for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        p = torch.softmax(model(x_test), dim=1)
    match = ((p > 0.5).float() == y_test).all(1).float().mean().item()
    print("epoch", epoch, "loss", round(total / len(loader), 4), "exact match", round(match, 4))
