"""Physics-informed network for a Helmholtz equation on the unit square."""
import math

import torch
import torch.nn as nn
from torch import autograd

torch.manual_seed(7)
K = 1.0
A1, A2 = 1.0, 1.0


def exact(g):
    return torch.sin(A1 * math.pi * g[:, [0]]) * torch.sin(A2 * math.pi * g[:, [1]])


def source(g):
    u = exact(g)
    return -((A1 * math.pi) ** 2 + (A2 * math.pi) ** 2) * u + K**2 * u


class PINN(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(2 * x - 1)

    def loss_BC(self, x_boundary, u_boundary):
        return nn.functional.mse_loss(self(x_boundary), u_boundary)

    def loss_PDE(self, x_pde):
        g = x_pde.clone().requires_grad_(True)
        u = self(g)
        u_x = autograd.grad(u, g, torch.ones_like(u), create_graph=True)[0]
        u_xx = autograd.grad(u_x, g, torch.ones_like(u_x), create_graph=True)[0]
        u_xx_1 = u_xx[:, [0]]
        u_xx_2 = u_xx[:, [1]]
        residual = u_xx_1 + u_xx_2 + K**2 * u - source(g)
        return residual.pow(2).mean()


def boundary(n):
    s = torch.rand(n, 4, 1)
    zero, one = torch.zeros(n, 1), torch.ones(n, 1)
    sides = [(s[:, 0], zero), (s[:, 1], one), (zero, s[:, 2]), (one, s[:, 3])]
    return torch.cat([torch.cat(side, 1) for side in sides])


model = PINN()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 300, 0.4)
grid = torch.linspace(0, 1, 41)
test = torch.cartesian_prod(grid, grid)
for step in range(800):
    x_b = boundary(20)
    bc, pde = model.loss_BC(x_b, exact(x_b)), model.loss_PDE(torch.rand(160, 2))
    loss = 50 * bc + pde
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 200 == 199:
        print(f"step {step + 1} boundary loss {bc.item():.5f} equation loss {pde.item():.4f}")
with torch.no_grad():
    u, v = model(test), exact(test)
print(f"relative L2 error {((u - v).norm() / v.norm()).item():.4f}")
