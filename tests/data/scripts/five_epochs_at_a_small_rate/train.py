import numpy as np
import torch
import torch.nn as nn

np.random.seed(1)
torch.manual_seed(1)
dataset_size = 200


def make_points(size):
    class_1 = np.random.uniform(low=0.2, high=0.4, size=(size,))
    class_2 = np.random.uniform(low=0.5, high=0.7, size=(size,))
    dataset = []
    for i in range(0, size, 2):
        dataset.append([class_1[i], class_1[i + 1], 1])
        dataset.append([class_2[i], class_2[i + 1], 2])
    dataset = np.array(dataset)
    x = torch.tensor(dataset[:, 0:-1], dtype=torch.float32)
    y = torch.tensor(dataset[:, -1] - 1).long()
    return x, y


def fit(model, x, y, epochs, batch_size, lr):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = criterion(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch < 5 or epoch % 20 == 19:
            print("epoch", epoch + 1, "loss", round(total / len(x), 4))


x_train, y_train = make_points(dataset_size)
x_new, y_new = make_points(100)
nr_feats = x_train.shape[1]
nr_classes = len(y_train.unique())
print("number of class", nr_classes)

model = nn.Sequential(nn.Linear(nr_feats, 2), nn.Sigmoid(), nn.Linear(2, nr_classes))
fit(model, x_train, y_train, epochs=5, batch_size=32, lr=0.001)

model.eval()
with torch.no_grad():
    classes = model(x_new).argmax(1)
print(classes.bincount(minlength=2).tolist())
print("accuracy", (classes == y_new).float().mean().item())
