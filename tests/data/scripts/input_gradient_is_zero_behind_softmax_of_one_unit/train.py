import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

num_features = 5
np.random.seed(0)
torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(num_features, 60)
        self.fc2 = nn.Linear(60, 50)
        self.out = nn.Linear(50, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softmax(self.out(x), dim=1)


def data(n):
    x = np.random.rand(n, num_features)
    y = x[:, 0] + x[:, 3] ** 2 > 0.8 + 0.05 * np.random.randn(n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).unsqueeze(1)


x_train, y_train = data(1000)
x_test, y_test = data(300)
model = Model()
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.BCELoss()

for epoch in range(10):
    model.train()
    for idx in torch.randperm(len(x_train)).split(25):
        loss = criterion(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = ((model(x_test) > 0.5).float() == y_test).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f} acc {acc:.4f}")

x = x_test.clone().requires_grad_(True)
(model_grad,) = torch.autograd.grad(model(x).sum(), x)
print(model_grad[0])
print("saliency", model_grad.abs().mean(0).max().item())
