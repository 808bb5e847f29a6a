import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim

np.random.seed(1)
torch.manual_seed(1)

X = np.random.randn(2000, 22)
w = np.random.randn(22)
y = ((X @ w + 0.8 * X[:, 0] * X[:, 1] + 0.5 * np.random.randn(2000)) > 0).astype(int)
X_train, X_test, y_train, y_test = X[:1600], X[1600:], y[:1600], y[1600:]

X_train_t = torch.tensor(X_train).float()
X_test_t = torch.tensor(X_test).float()
y_train_t = torch.tensor(y_train).long().reshape(X_train_t.shape[0], 1)
y_test_t = torch.tensor(y_test).long().reshape(X_test_t.shape[0], 1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(22, 10)
        self.fc2 = nn.Linear(10, 1)

    def forward(self, x):
        x = x.view(x.shape[0], -1)
        x = F.relu(self.fc1(x))
        x = F.log_softmax(self.fc2(x), dim=1)
        return x


model = Classifier()
criterion = nn.BCELoss()
optimizer = optim.SGD(model.parameters(), lr=0.2)

epochs = 400
train_losses, test_losses = [], []
for e in range(epochs):
    model.train()
    optimizer.zero_grad()
    ps = model(X_train_t)
    loss = criterion(ps, y_train_t.type(torch.float32))
    loss.backward()
    optimizer.step()
    train_loss = loss.item()

    model.eval()
    with torch.no_grad():
        ps = model(X_test_t)
        test_loss = criterion(ps, y_test_t.to(torch.float32)).item()
        acc = ((ps > 0.5).long() == y_test_t).float().mean().item()
    train_losses.append(train_loss)
    test_losses.append(test_loss)

    if e % 50 == 49:
        print(
            "Epoch: {}/{}.. ".format(e + 1, epochs),
            "Training Loss: {:.3f}.. ".format(train_loss),
            "Test Loss: {:.3f}.. ".format(test_loss),
            "Test acc: {:.3f}".format(acc),
        )
