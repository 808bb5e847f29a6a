"""House prices from a table of numeric features."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def houses(n, rng):
    area = rng.gamma(6, 20, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, None)
    age = rng.uniform(0, 80, n)
    distance = rng.exponential(6, n)
    garden = rng.random(n) < 0.4
    price = 1.9 * area + 8 * rooms - 0.5 * age - 4 * distance + 25 * garden + 0.004 * area * (40 - age)
    price += rng.normal(0, 12, n)
    return np.stack([area, rooms, age, distance, garden], 1).astype(np.float32), price.astype(np.float32)


def make_loaders(seed, batch_size):
    rng = np.random.default_rng(seed)
    x, price = houses(2000, rng)
    tr, va = slice(0, 1600), slice(1600, None)
    x = (x - x[tr].mean(0)) / x[tr].std(0)
    mean, std = price[tr].mean(), price[tr].std()
    y = (price - mean) / std
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    train = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=batch_size, shuffle=True)
    val = DataLoader(TensorDataset(x[va], y[va]), batch_size=400)
    return train, val, float(std)


def build_network():
    return nn.Sequential(
        nn.Linear(5, 64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Linear(32, 1),
    )


def train(epochs=12, lr=2e-3, seed=8):
    torch.manual_seed(seed)
    train_loader, val_loader, scale = make_loaders(seed, 32)
    model = build_network()
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        for features, target in train_loader:
            prediction = model(features)
            loss = loss_fn(prediction, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        errors = []
        with torch.no_grad():
            for features, target in val_loader:
                errors.append((model(features).flatten() - target).abs())
        mae = torch.cat(errors).mean().item() * scale
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  val MAE {mae:.1f} k")
    return mae


if __name__ == "__main__":
    print(f"validation MAE (thousands): {train():.2f}")
