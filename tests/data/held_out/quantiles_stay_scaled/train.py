"""Forecast of daily demand with prediction intervals."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(8)
torch.manual_seed(8)
LAGS, LOW, HIGH = 14, 0.1, 0.9

t = np.arange(900)
demand = 120 + 25 * np.sin(2 * np.pi * t / 7) + 12 * np.sin(2 * np.pi * t / 91) + rng.normal(0, 6, len(t))
n_train = 700


class StandardScaler:
    def fit(self, values):
        self.mean, self.std = values.mean(), values.std()
        return self

    def transform(self, values):
        return (values - self.mean) / self.std

    def inverse_transform(self, values):
        return values * self.std + self.mean


class Forecaster(nn.Module):
    """Gives the low quantile, the median and the high quantile of the next day."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LAGS, 48), nn.ReLU(), nn.Linear(48, 3))

    def forward(self, x):
        return self.net(x)


def pinball(pred, target, levels=(LOW, 0.5, HIGH)):
    error = target[:, None] - pred
    q = torch.tensor(levels)
    return torch.maximum(q * error, (q - 1) * error).mean()


scaler = StandardScaler().fit(demand[:n_train])
scaled = torch.tensor(scaler.transform(demand), dtype=torch.float32)
windows = scaled.unfold(0, LAGS + 1, 1)
train, test = windows[: n_train - LAGS], windows[n_train - LAGS :]

model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(30):
    for idx in torch.randperm(len(train)).split(32):
        loss = pinball(model(train[idx, :LAGS]), train[idx, LAGS])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} pinball loss {loss.item():.4f}")


def make_future(model, windows):
    """The forecast in the units of the demand."""
    with torch.no_grad():
        out = model(windows[:, :LAGS]).double().numpy()
    columns = {"target_0.1": out[:, 0], "target": out[:, 1], "target_0.9": out[:, 2]}
    for name in columns:
        if name == "target":
            columns[name] = scaler.inverse_transform(columns[name])
    return columns


forecast = make_future(model, test)
actual = demand[n_train:]
print(f"mean absolute error {np.abs(forecast['target'] - actual).mean():.3f}")
inside = (actual >= forecast["target_0.1"]) & (actual <= forecast["target_0.9"])
print(f"coverage of the 80 % interval {inside.mean():.4f}")
