import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
X_train = np.array([[1] * 128] * 10**3 + [[0] * 128] * 10**3)
X_test = np.array([[1] * 128] * 10**2 + [[0] * 128] * 10**2)
Y_train = np.array([True] * 10**3 + [False] * 10**3)
Y_test = np.array([True] * 10**2 + [False] * 10**2)

noise = np.random.RandomState(0)
X_train = (X_train + 0.3 * noise.randn(*X_train.shape)).astype("float32")
X_test = (X_test + 0.3 * noise.randn(*X_test.shape)).astype("float32")
Y_train = Y_train.astype("float32").reshape(-1, 1)
Y_test = Y_test.astype("float32").reshape(-1, 1)

batch_size = 50
nb_epoch = 3

model = nn.Sequential(
    nn.Linear(128, 50),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(50, 50),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(50, 1),
    nn.Softmax(dim=1),
)
rms = torch.optim.RMSprop(model.parameters(), lr=0.001)
criterion = nn.BCELoss()
loader = DataLoader(TensorDataset(torch.tensor(X_train), torch.tensor(Y_train)), batch_size=batch_size, shuffle=True)
x_test, y_test = torch.tensor(X_test), torch.tensor(Y_test)

for epoch in range(nb_epoch):
    model.train()
    total, right = 0.0, 0
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        rms.zero_grad()
        loss.backward()
        rms.step()
        total += loss.item() * len(x)
        right += ((out > 0.5).float() == y).sum().item()
    print("Epoch %d loss: %.4f acc: %.4f" % (epoch + 1, total / len(X_train), right / len(X_train)))

model.eval()
with torch.no_grad():
    out = model(x_test)
print("Test score:", criterion(out, y_test).item())
print("Test accuracy:", ((out > 0.5).float() == y_test).float().mean().item())
