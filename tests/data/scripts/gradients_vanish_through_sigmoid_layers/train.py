import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)
torch.manual_seed(0)


def make_circles(n, noise=0.08, factor=0.5):
    label = np.random.randint(0, 2, n)
    angle = 2 * np.pi * np.random.rand(n)
    radius = np.where(label == 1, factor, 1.0)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + noise * np.random.randn(n, 2)
    return torch.tensor(points).float(), torch.tensor(label).float().unsqueeze(1)


def build(hidden):
    blocks = [nn.Linear(2, 32), nn.Sigmoid()]
    for _ in range(hidden):
        blocks += [nn.Linear(32, 32), nn.Sigmoid()]
    blocks.append(nn.Linear(32, 1))
    return nn.Sequential(*blocks)


trainX, trainy = make_circles(1000)
testX, testy = make_circles(400)
model = build(hidden=8)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
bce = nn.BCEWithLogitsLoss()

for epoch in range(15):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(trainX)).split(40):
        loss = bce(model(trainX[idx]), trainy[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        test_acc = ((model(testX) > 0).float() == testy).float().mean().item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {total / 25:.4f}, test accuracy {test_acc:.4f}")
