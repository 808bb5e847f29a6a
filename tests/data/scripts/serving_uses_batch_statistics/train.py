"""Hourly energy demand of buildings; trains, saves and serves the model."""
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

COLUMNS = ["temperature", "humidity", "floor_area", "occupants", "hour"]


def readings(n, rng, month=None):
    month = rng.integers(0, 12, n) if month is None else np.full(n, month)
    temp = 12 - 11 * np.cos(2 * np.pi * month / 12) + rng.normal(0, 4, n)
    hum = rng.uniform(30, 95, n)
    area = rng.gamma(4, 250, n)
    people = rng.poisson(area / 40)
    hour = rng.integers(0, 24, n)
    demand = 0.05 * area + 0.4 * people * np.exp(-(((hour - 13) / 6) ** 2))
    demand += 1.6 * np.abs(temp - 18) + 0.02 * hum + rng.normal(0, 3, n)
    return np.stack([temp, hum, area, people, hour], 1).astype(np.float32), demand.astype(np.float32)


def standardise(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


def build():
    return nn.Sequential(nn.Linear(5, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))


def train(path, seed=0, epochs=12):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    x, y = readings(2400, rng)
    x_train, y_train, x_val, y_val = x[:2000], y[:2000], x[2000:], y[2000:]
    mean, std = x_train.mean(0), x_train.std(0)
    y_mean, y_std = float(y_train.mean()), float(y_train.std())
    xt = torch.from_numpy((x_train - mean) / std)
    xv = torch.from_numpy((x_val - mean) / std)
    yt = torch.from_numpy((y_train - y_mean) / y_std)
    loader = DataLoader(TensorDataset(xt, yt), batch_size=50, shuffle=True)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            pred = model(xv).squeeze(1).numpy() * y_std + y_mean
        print(f"epoch {epoch} loss {loss.item():.4f} val MAE {np.abs(pred - y_val).mean():.2f} kWh")
    torch.save(
        {"model": model.state_dict(), "mean": mean.tolist(), "std": std.tolist(), "y_mean": y_mean, "y_std": y_std}, path
    )


class Service:
    def __init__(self, path):
        state = torch.load(path, weights_only=True)
        self.model = build()
        self.model.load_state_dict(state["model"])
        self.model.eval()
        self.mean = np.array(state["mean"], dtype=np.float32)
        self.std = np.array(state["std"], dtype=np.float32)
        self.y_mean, self.y_std = state["y_mean"], state["y_std"]

    @torch.no_grad()
    def predict(self, rows):
        x = torch.from_numpy(standardise(rows))
        return self.model(x).squeeze(1).numpy() * self.y_std + self.y_mean


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "demand.pt")
        train(path)
        service = Service(path)
        rng = np.random.default_rng(99)
        errors = []
        for month in range(12):
            rows, demand = readings(30, rng, month)
            errors.append(np.abs(service.predict(rows) - demand))
    print(f"MAE of the service on requests by month: {np.concatenate(errors).mean():.3f}")
