"""Small image classifier trained with mixup."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
np.random.seed(4)
N_CLASSES, ALPHA, EPOCHS = 6, 1.0, 14
prototypes = torch.randn(N_CLASSES, 1, 12, 12)


def sample(n):
    y = torch.randint(0, N_CLASSES, (n,))
    x = prototypes[y] + 1.6 * torch.randn(n, 1, 12, 12)
    return x, y


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        )
        self.fc = nn.Linear(32 * 36, N_CLASSES)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def mixup(x, y):
    """Mix a batch of images and their one-hot labels with one draw of lambda."""
    lam = np.random.beta(ALPHA, ALPHA)
    x_mix = lam * x + (1 - lam) * x[torch.randperm(len(x))]
    y_mix = lam * y + (1 - lam) * y[torch.randperm(len(y))]
    return x_mix, y_mix


x_train, y_train = sample(500)
x_test, y_test = sample(600)
model = ConvNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(x_train)).split(50):
        x, y = mixup(x_train[idx], F.one_hot(y_train[idx], N_CLASSES).float())
        loss = -(y * F.log_softmax(model(x), dim=1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        logits = model(x_test)
    acc = (logits.argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch:2d}  train loss {running / len(x_train):.3f}  test accuracy {acc:.4f}")
print(f"final test loss {F.cross_entropy(logits, y_test).item():.4f}")
