"""Two regressions on one trunk; the weights of the tasks are learned from their uncertainty."""
import torch
import torch.nn as nn

torch.manual_seed(1)
DIM = 10
a, b = torch.randn(DIM, 1) / DIM**0.5, torch.randn(DIM, 1) / DIM**0.5


def table(n):
    x = torch.randn(n, DIM)
    easy = 0.05 * (x @ a)
    hard = torch.sin(2 * x @ b) + 0.3 * torch.randn(n, 1)
    return x, [easy, hard]


class UncertaintyWeight(nn.Module):
    def __init__(self, n_tasks):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_tasks))

    def forward(self, losses):
        total = 0.0
        for i, loss in enumerate(losses):
            total = total + 0.5 * loss / self.weight[i] ** 2 + torch.log(self.weight[i])
        return total


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(64, 1), nn.Linear(64, 1)])

    def forward(self, x):
        h = self.trunk(x)
        return [head(h) for head in self.heads]


x, targets = table(1200)
x_val, val_targets = table(600)
model, balance = Shared(), UncertaintyWeight(2)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weight_optimizer = torch.optim.SGD(balance.parameters(), lr=1e-2, momentum=0.9)
for epoch in range(15):
    for idx in torch.randperm(len(x)).split(60):
        outputs = model(x[idx])
        losses = [nn.functional.mse_loss(o, t[idx]) for o, t in zip(outputs, targets)]
        loss = balance(losses)
        optimizer.zero_grad()
        weight_optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weight_optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} total {loss.item():.4f} losses {losses[0].item():.5f} {losses[1].item():.4f}")
with torch.no_grad():
    errors = [nn.functional.mse_loss(o, t).item() for o, t in zip(model(x_val), val_targets)]
print(f"validation errors: hard {errors[1]:.4f}, easy {errors[0]:.5f}")
