import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def patients(n, rng):
    x = rng.normal(size=(n, 20))
    logit = 1.5 * x[:, 0] - 1.2 * x[:, 1] + x[:, 2] * x[:, 3]
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class RiskModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def mean_loss(model, data, criterion):
    model.eval()
    with torch.no_grad():
        return criterion(model(data[0]), data[1]).item()


def fit(model, train, val, epochs=40):
    loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best_loss, best_state, best_epoch = float("inf"), None, -1
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        val_loss = mean_loss(model, val, criterion)
        if val_loss < best_loss:
            best_loss, best_epoch = val_loss, epoch
            best_state = model.state_dict()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} val loss {val_loss:.4f}")
    print(f"restoring epoch {best_epoch} with val loss {best_loss:.4f}")
    model.load_state_dict(best_state)
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    train, val, test = patients(500, rng), patients(400, rng), patients(2000, rng)
    model = fit(RiskModel(), train, val)
    print(f"test loss {mean_loss(model, test, nn.BCEWithLogitsLoss()):.4f}")
