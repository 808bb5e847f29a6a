import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import TensorDataset, DataLoader


def rings(n, g):
    y = torch.randint(0, 4, (n,), generator=g)
    r = 0.6 + 0.5 * y + 0.18 * torch.randn(n, generator=g)
    phi = torch.rand(n, generator=g) * 6.2832
    x = torch.stack([r * phi.cos(), r * phi.sin()], 1)
    return x, y


def mlp(width):
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def nll(model, x, y):
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(x), y).item()


class Distiller:
    def __init__(self, teacher, student, temperature=2.0, alpha=0.9, lr=3e-3):
        self.teacher, self.student = teacher.eval(), student
        self.T, self.alpha = temperature, alpha
        self.optimizer = torch.optim.Adam(student.parameters(), lr=lr)

    def loss(self, x, y):
        with torch.no_grad():
            soft_targets = F.softmax(self.teacher(x) / self.T, dim=1)
        logits = self.student(x)
        soft = F.kl_div(F.softmax(logits / self.T, dim=1), soft_targets, reduction="batchmean") * self.T ** 2
        hard = F.cross_entropy(logits, y)
        return self.alpha * soft + (1 - self.alpha) * hard

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.student.train()
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.loss(x, y)
                loss.backward()
                self.optimizer.step()
            print(f"student epoch {epoch} loss {loss.item():.4f}")


torch.manual_seed(4)
g = torch.Generator().manual_seed(4)
x, y = rings(1600, g)
x_val, y_val = rings(800, g)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)

teacher = mlp(64)
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(12):
    teacher.train()
    for xb, yb in loader:
        opt.zero_grad()
        F.cross_entropy(teacher(xb), yb).backward()
        opt.step()
print(f"teacher val acc {accuracy(teacher, x_val, y_val):.3f} nll {nll(teacher, x_val, y_val):.3f}")

student = mlp(16)
Distiller(teacher, student).fit(loader, 15)
print(f"student val acc {accuracy(student, x_val, y_val):.3f}, nll {nll(student, x_val, y_val):.4f}")
