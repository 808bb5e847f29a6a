import copy
import math
import torch
import torch.nn as nn

torch.manual_seed(15)


class ExponentialMovingAverage:
    def __init__(self, parameters, decay=0.999):
        self.decay = decay
        self.shadow_params = [p.detach().clone() for p in parameters]

    @torch.no_grad()
    def update(self, parameters):
        one_minus_decay = 1.0 - self.decay
        for s_param, param in zip(self.shadow_params, parameters):
            gap = s_param - param
            s_param.add_(gap * one_minus_decay)

    @torch.no_grad()
    def copy_to(self, parameters):
        for s_param, param in zip(self.shadow_params, parameters):
            param.copy_(s_param)


def spiral(n):
    a = 1.5 + 7 * torch.rand(n)
    return torch.stack([a * torch.cos(a), a * torch.sin(a)], 1) / 5 + 0.03 * torch.randn(n, 2)


class Velocity(nn.Module):
    """Field of a flow from noise (t = 0) to data (t = 1)."""

    def __init__(self, w=96):
        super().__init__()
        self.register_buffer("freq", math.pi * torch.arange(1, 5))
        self.net = nn.Sequential(nn.Linear(2 + 8, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU(), nn.Linear(w, 2))

    def forward(self, x, t):
        a = t[:, None] * self.freq
        return self.net(torch.cat([x, a.sin(), a.cos()], 1))


def flow_loss(model, n):
    x1 = spiral(n)
    x0, t = torch.randn_like(x1), torch.rand(n)
    xt = (1 - t[:, None]) * x0 + t[:, None] * x1
    return (model(xt, t) - (x1 - x0)).pow(2).mean()


model = Velocity()
ema = ExponentialMovingAverage(model.parameters())
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(2500):
    loss = flow_loss(model, 128)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model.parameters())
    if step % 500 == 499:
        print(f"step {step + 1}, loss {loss.item():.4f}")

final = copy.deepcopy(model)
ema.copy_to(final.parameters())
with torch.no_grad():
    live, averaged = flow_loss(model, 5000).item(), flow_loss(final, 5000).item()
print(f"new data: live weights {live:.4f}, averaged weights {averaged:.4f}")
