import numpy
import torch
import torch.nn as nn

seed = 4
numpy.random.seed(seed)
torch.manual_seed(seed)


def network_packets(n):
    attack = numpy.random.rand(n) < 0.4
    size = numpy.random.lognormal(5.5, 1.0, n) + 300 * attack
    ports = numpy.random.randint(1024, 65535, (n, 2))
    ports[:, 1] = numpy.where(numpy.random.rand(n) < 0.7, 80, ports[:, 1])
    rate = numpy.random.gamma(2.0, 30 + 120 * attack)
    flags = numpy.random.rand(n, 4) < (0.2 + 0.3 * attack[:, None])
    rest = numpy.random.randn(n, 3) * [5, 50, 500]
    return numpy.column_stack([size, ports, rate, flags, rest]).astype(float), attack.astype(float)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(11, 12)
        self.fc2 = nn.Linear(12, 12)
        self.fc3 = nn.Linear(12, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        x = torch.relu(self.fc3(x))
        return torch.clamp(x, max=1.0)


X, Y = network_packets(1200)
X_train, X_test = X[:900], X[900:]
X_train, X_test = torch.tensor(X_train).float(), torch.tensor(X_test).float()
Y_train, Y_test = torch.tensor(Y[:900]).float().unsqueeze(1), torch.tensor(Y[900:]).float().unsqueeze(1)

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
bce = nn.BCELoss()
for epoch in range(10):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(X_train)).split(10):
        loss = bce(model(X_train[rows]), Y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        scores = ((model(X_test) > 0.5).float() == Y_test).float().mean().item()
    print("epoch %d loss: %.4f acc: %.4f" % (epoch + 1, total / len(X_train), scores))
