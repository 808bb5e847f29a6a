"""Curve fitting from few noisy measurements; keeps the best weights."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def measurements(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 6))
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + rng.normal(0, 0.5, n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best_loss = float("inf")
        self.best_state = None
        self.bad_epochs = 0

    def update(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = model.state_dict()
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def mse(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def main():
    torch.manual_seed(1)
    x, y = measurements(150, 1)
    xv, yv = measurements(300, 2)
    xt, yt = measurements(1000, 3)
    xm, xs, ym, ys = x.mean(0), x.std(0), y.mean(), y.std()
    x, xv, xt = ((a - xm) / xs for a in (x, xv, xt))
    y, yv, yt = ((a - ym) / ys for a in (y, yv, yt))
    loader = DataLoader(TensorDataset(x, y), batch_size=25, shuffle=True)

    model = nn.Sequential(nn.Linear(6, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    stopper = EarlyStopping(patience=60)
    for epoch in range(120):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
        val = mse(model, xv, yv)
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d} train {loss.item():.4f} val {val:.4f}")
        if stopper.update(val, model):
            print(f"early stop at epoch {epoch}")
            break

    model.load_state_dict(stopper.best_state)
    torch.save(model.state_dict(), os.path.join(tempfile.mkdtemp(), "best.pt"))
    print(f"best validation mse {stopper.best_loss:.4f}")
    print(f"test mse of the saved model {mse(model, xt, yt):.4f}")


if __name__ == "__main__":
    main()
