import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)
torch.manual_seed(0)
INDIM = 3
WS = [2.0, 1.0, 0.5]
XNO = 2.2
EPOCHS = 10


def myrand(a, b):
    return b * (np.random.random_sample() - 0.5) + a


def get_data(count, ws, xno, bounds=100, rweight=0.0):
    xt = bounds * np.random.rand(count, len(ws))
    noise = np.array([xno + rweight * myrand(-1, 1) for _ in xt])
    yt = xt.dot(np.array(ws)) + noise
    return torch.tensor(xt, dtype=torch.float32), torch.tensor(yt, dtype=torch.float32).unsqueeze(1)


X_train, y_train = get_data(3000, WS, XNO, 10000)
X_test, y_test = get_data(1000, WS, XNO, 10000, rweight=0.4)

model = nn.Sequential(
    nn.Linear(INDIM, INDIM),
    nn.Tanh(),
    nn.Dropout(0.5),
    nn.Linear(INDIM, 2),
    nn.Tanh(),
    nn.Dropout(0.5),
    nn.Linear(2, 1),
    nn.Softmax(dim=1),
)
sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
mse = nn.MSELoss()

for epoch in range(EPOCHS):
    model.train()
    losses = []
    for idx in torch.randperm(len(X_train)).split(32):
        loss = mse(model(X_train[idx]), y_train[idx])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    print("epoch", epoch, "loss", np.mean(losses))

model.eval()
with torch.no_grad():
    predictions = model(X_test)
score = mse(predictions, y_test).item()
print("score", score, "r2", round(1 - score / y_test.var(unbiased=False).item(), 4))
