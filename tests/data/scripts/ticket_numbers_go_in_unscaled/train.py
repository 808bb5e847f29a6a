import numpy as np
import torch
import torch.nn as nn

np.random.seed(1919)
torch.manual_seed(1919)
batch_size = 16
nb_epoch = 15


def read_passengers(n):
    pclass = np.random.randint(1, 4, n)
    sex = np.random.randint(0, 2, n)
    age = np.clip(np.random.normal(30, 14, n), 1, 80)
    sibsp = np.random.poisson(0.5, n)
    ticket = np.random.randint(0, 929, n)
    fare = np.random.lognormal(3.8 - 0.7 * pclass, 0.8, n) * 3
    cabin = np.random.randint(0, 187, n)
    name = np.random.randint(0, 1307, n)
    logit = 3.0 * sex - 1.5 * (pclass - 2) - 0.06 * (age - 30) - 0.6 * sibsp - 1.2
    survived = np.random.rand(n) < 1 / (1 + np.exp(-2 * logit))
    table = np.stack([pclass, name, sex, age, sibsp, ticket, fare, cabin], axis=1)
    return table.astype(np.float32), survived.astype(np.int64)


X, Y = read_passengers(890)
x_train, x_test = X[:640], X[640:]
x_train, x_test = torch.tensor(x_train), torch.tensor(x_test)
y_train, y_test = torch.tensor(Y[:640]), torch.tensor(Y[640:])

model = nn.Sequential(
    nn.Linear(8, 128),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(128, 2),
    nn.Softmax(dim=1),
)
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()

for epoch in range(nb_epoch):
    model.train()
    perm = torch.randperm(len(x_train))
    loss_sum = 0.0
    for idx in perm.split(batch_size):
        optimizer.zero_grad()
        loss = criterion(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        preds = model(x_test).argmax(1)
    print("epoch %d loss %.4f test acc %.4f" % (epoch, loss_sum / 640, (preds == y_test).float().mean()))
