import math

import torch
import torch.nn as nn

torch.manual_seed(44)
# energies of small molecules: a sum over atoms, each atom in its own surrounding
ATOMS, STEPS, WARM = 6, 300, 150


def molecules(n):
    pos = torch.randn(n, ATOMS, 3)
    distance = torch.cdist(pos, pos) + 10 * torch.eye(ATOMS)
    energy = (torch.exp(-distance) - 0.3 * torch.exp(-((distance - 2) ** 2))).sum((1, 2))
    return distance, (energy - 0.5)[:, None]


class AtomNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, 5, 16))
        self.embed = nn.Sequential(nn.Linear(16, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.out = nn.Linear(48, 1)

    def forward(self, distance):
        basis = torch.exp(-4 * (distance[..., None] - self.centres) ** 2)
        return self.out(self.embed(basis.sum(2))).sum(1)


def get_cosine_lr_lambda(warmup_steps, total_steps, warmup_factor=0.2, min_factor=0.01):
    def factor(step):
        if step < warmup_steps:
            alpha = step / warmup_steps
            return warmup_factor * (1 - alpha) + alpha
        progress = step / total_steps
        return max(min_factor, 0.5 * (1 + math.cos(math.pi * progress)))

    return factor


x, y = molecules(1200)
x_val, y_val = molecules(500)
model = AtomNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, get_cosine_lr_lambda(WARM, STEPS))
for step in range(STEPS):
    idx = torch.randint(0, len(x), (32,))
    loss = nn.functional.l1_loss(model(x[idx]), y[idx])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 50 == 49:
        print(f"step {step + 1} lr {scheduler.get_last_lr()[0]:.2e} loss {loss.item():.4f}")
with torch.no_grad():
    mae = nn.functional.l1_loss(model(x_val), y_val).item()
print(f"validation MAE of the energy {mae:.5f}")
