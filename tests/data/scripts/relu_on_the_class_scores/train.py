import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
rng = np.random.RandomState(6)
prototypes = rng.rand(10, 12, 12) < 0.3


def next_batch(n):
    y = rng.randint(0, 10, n)
    x = prototypes[y] + 0.5 * rng.randn(n, 12, 12)
    return torch.tensor(x.reshape(n, 144), dtype=torch.float32), torch.tensor(y)


class Net(nn.Module):
    def __init__(self, layer_1=8, layer_2=16, layer_3=128):
        super().__init__()
        self.conv1 = nn.Conv2d(1, layer_1, 5, padding=2)
        self.conv2 = nn.Conv2d(layer_1, layer_2, 5, padding=2)
        self.fc1 = nn.Linear(3 * 3 * layer_2, layer_3)
        self.fc2 = nn.Linear(layer_3, 10)
        for layer in (self.conv1, self.conv2, self.fc1):
            nn.init.constant_(layer.bias, 0.1)

    def forward(self, x):
        x = x.view(-1, 1, 12, 12)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.dropout(x, 0.5, training=self.training)
        return F.relu(self.fc2(x))


test_x, test_y = next_batch(500)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for i in range(240):
    model.train()
    batch = next_batch(50)
    loss = F.cross_entropy(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 60 == 59:
        model.eval()
        with torch.no_grad():
            test_accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
        print("step", i + 1, ": loss", round(loss.item(), 4), "test accuracy", round(test_accuracy, 4))
