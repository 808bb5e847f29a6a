import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def spectra(n, rng):
    """Infrared spectra of 90 channels, three kinds of plastic, some labels wrong."""
    base = np.random.default_rng(8).normal(0, 0.25, (3, 90))
    y = rng.integers(0, 3, n)
    x = base[y] + rng.normal(0, 1, (n, 90))
    wrong = rng.random(n) < 0.1
    y = np.where(wrong, rng.integers(0, 3, n), y)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


class Runner:
    def __init__(self, epochs=20, lr=1e-3, batch_size=40):
        torch.manual_seed(3)
        rng = np.random.default_rng(3)
        self.epochs = epochs
        self.train_loader = DataLoader(spectra(600, rng), batch_size=batch_size, shuffle=True)
        self.val_loader = DataLoader(spectra(400, rng), batch_size=100)
        self.test_loader = DataLoader(spectra(1500, rng), batch_size=100)
        self.model = nn.Sequential(nn.Linear(90, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-2)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def score(self, loader):
        self.model.eval()
        loss = correct = count = 0
        for x, y in loader:
            out = self.model(x)
            loss += self.criterion(out, y).item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            count += len(y)
        return loss / count, correct / count

    def fit(self):
        best, state, val_acc = float("inf"), None, 0.0
        for epoch in range(self.epochs):
            self.train_epoch()
            loss, acc = self.score(self.train_loader)
            print(f"epoch {epoch:2d} val loss {loss:.4f} val acc {acc:.4f}")
            if loss < best:
                best, val_acc = loss, acc
                state = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(state)
        return val_acc


if __name__ == "__main__":
    runner = Runner()
    val_acc = runner.fit()
    test_loss, test_acc = runner.score(runner.test_loader)
    print(f"best val acc {val_acc:.4f}, test acc {test_acc:.4f}, test loss {test_loss:.4f}")
