import torch
import torch.nn as nn
import torch.nn.functional as F

# ---- config
micro_batch = 4
accum_steps = 8
max_iters = 300
lr = 0.2
momentum = 0.9
torch.manual_seed(42)
# ----

gen = torch.Generator().manual_seed(7)
proj = torch.randn(30, 5, generator=gen)


def get_batch(n):
    x = torch.randn(n, 30, generator=gen)
    scores = x @ proj / 5.5 + 0.9 * torch.randn(n, 5, generator=gen)
    return x, scores.argmax(1)


x_val, y_val = get_batch(2000)
x_train, y_train = get_batch(6000)


def train_batches():
    while True:
        order = torch.randperm(len(x_train))
        for i in range(0, len(order) - micro_batch + 1, micro_batch):
            idx = order[i:i + micro_batch]
            yield x_train[idx], y_train[idx]


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(30, 64)
        self.fc2 = nn.Linear(64, 5)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


@torch.no_grad()
def val_loss(model):
    model.eval()
    out = F.cross_entropy(model(x_val), y_val).item()
    model.train()
    return out


model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, max_iters)
batches = train_batches()
model.train()
for it in range(max_iters):
    total = 0.0
    for micro_step in range(accum_steps):
        optimizer.zero_grad(set_to_none=True)
        x, y = next(batches)
        loss = F.cross_entropy(model(x), y) / accum_steps
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if it % 50 == 0:
        print(f"iter {it} train loss {total:.4f} val loss {val_loss(model):.4f}")
print(f"final val loss {val_loss(model):.4f}")
