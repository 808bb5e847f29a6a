import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

np.random.seed(34)
torch.manual_seed(34)


def housing(n):
    x = np.random.randn(n, 8).astype(np.float32)
    y = x[:, 0] * 2 + np.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3] + 0.1 * np.random.randn(n)
    glitch = np.random.rand(n) < 0.02
    y = np.where(glitch, y + 40.0 * np.random.randn(n), y)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32)), torch.from_numpy(~glitch)


class TabM(nn.Module):
    def __init__(self, k=4, d=64):
        super().__init__()
        self.r, self.s = nn.Parameter(torch.ones(k, 8) + 0.2 * torch.randn(k, 8)), nn.Parameter(torch.ones(k, d))
        self.l1, self.l2 = nn.Linear(8, d), nn.Linear(d, d)
        self.heads = nn.Parameter(torch.randn(k, d) / d**0.5)

    def forward(self, x):
        h = F.relu(self.l1(x[:, None] * self.r) * self.s)
        return (F.relu(self.l2(h)) * self.heads).sum(-1)


x_train, y_train, _ = housing(1600)
x_val, y_val, clean = housing(500)
scale = (y_train.median(), (y_train - y_train.median()).abs().median())
y_train, y_val = (y_train - scale[0]) / scale[1], (y_val - scale[0]) / scale[1]
model = TabM()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
gradient_clipping_norm = 1.0
for epoch in range(15):
    model.train()
    for batch_idx in torch.randperm(len(x_train)).split(32):
        optimizer.zero_grad()
        y_pred = model(x_train[batch_idx])
        loss = F.mse_loss(y_pred.flatten(), y_train[batch_idx].repeat_interleave(y_pred.shape[1]))
        torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping_norm)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = (model(x_val).mean(1) - y_val)[clean].abs().mean().item()
    print(f"Epoch {epoch} loss {loss.item():.4f} mean absolute error on clean validation rows {error:.4f}")
