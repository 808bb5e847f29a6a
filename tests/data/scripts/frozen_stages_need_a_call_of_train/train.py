import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
np.random.seed(0)
SIZE = 12


def shapes(n, kinds, seed, noise=0.8):
    rng = np.random.RandomState(seed)
    bank = np.random.RandomState(7).randn(9, 4, 4)
    y = rng.randint(0, len(kinds), n)
    x = rng.randn(n, 1, SIZE, SIZE) * noise
    for i, k in enumerate(y):
        r, c = rng.randint(0, SIZE - 4, 2)
        x[i, 0, r : r + 4, c : c + 4] += 1.5 * bank[kinds[k]]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class VGG(nn.Module):
    def __init__(self, frozen_stages=0, num_classes=9):
        super().__init__()
        self.stages = nn.ModuleList([self._stage(1, 16, 5), self._stage(16, 24, 3)])
        self.fc = nn.Linear(24, num_classes)
        self.frozen_stages = frozen_stages

    def _freeze_stages(self):
        for stage in self.stages[: self.frozen_stages]:
            stage.eval()
            for p in stage.parameters():
                p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        if mode:
            self._freeze_stages()
        return self

    @staticmethod
    def _stage(cin, cout, k):
        return nn.Sequential(nn.Conv2d(cin, cout, k, padding=k // 2), nn.BatchNorm2d(cout), nn.ReLU())

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.fc(F.adaptive_max_pool2d(x, 1).flatten(1))


def fit(model, x, y, epochs, lr, batch=32):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=lr, momentum=0.9)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for idx in order.split(batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    return model


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


xs, ys = shapes(1500, range(0, 9), seed=1)
pretrained = fit(VGG(), xs, ys, epochs=12, lr=0.05)
model = VGG(frozen_stages=2)
state = copy.deepcopy(pretrained.state_dict())
state.pop("fc.weight"), state.pop("fc.bias")
model.load_state_dict(state, strict=False)

xt, yt = shapes(36, range(0, 9), seed=2)
xv, yv = shapes(600, range(0, 9), seed=3)
fit(model, xt, yt, epochs=40, lr=0.1, batch=12)
print(f"test acc {accuracy(model, xv, yv):.4f}")
