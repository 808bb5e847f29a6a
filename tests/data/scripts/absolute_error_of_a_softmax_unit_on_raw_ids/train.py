import numpy
import torch
import torch.nn as nn

seed = 7
numpy.random.seed(seed)
torch.manual_seed(seed)

ids = numpy.random.randint(15000, 30000, 2000)
flag = (ids < 22000 + 700 * numpy.random.randn(2000)).astype(int)
dataset = numpy.stack([ids, flag], axis=1)
X = dataset[:, 0:1].astype(float)
Y = dataset[:, 1].astype(bool)
train_size = int(len(X) * 0.80)
test_size = len(X) - train_size
Xtrain, Xtest = X[0:train_size, :], X[train_size:, :]
Ytrain, Ytest = Y[0:train_size], Y[train_size:]
print(len(Xtrain), len(Xtest))

Xtrain, Xtest = torch.tensor(Xtrain).float(), torch.tensor(Xtest).float()
Ytrain, Ytest = torch.tensor(Ytrain).float().view(-1, 1), torch.tensor(Ytest).float().view(-1, 1)

model = nn.Sequential(
    nn.Linear(1, 1),
    nn.Sigmoid(),
    nn.Linear(1, 1),
    nn.Softmax(dim=1),
)
mae = nn.L1Loss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001)

for epoch in range(50):
    model.train()
    for idx in torch.randperm(train_size).split(100):
        optimizer.zero_grad()
        loss = mae(model(Xtrain[idx]), Ytrain[idx])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(Xtest)
        val_loss = mae(out, Ytest).item()
        val_acc = ((out > 0.5).float() == Ytest).float().mean().item()
    if epoch % 10 == 9:
        print(f"Epoch {epoch + 1} loss: {loss.item():.4f} val_loss: {val_loss:.4f} val_acc: {val_acc:.4f}")
