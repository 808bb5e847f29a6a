import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class RandomCrops(Dataset):
    def __init__(self, length, seed, crop=32, samples=256):
        t = np.arange(length)
        gen = np.random.RandomState(100)
        self.freq = 0.05 + 0.25 * (0.5 + 0.5 * np.sin(t / 700.0))
        self.signal = np.sin(np.cumsum(self.freq)) + 0.2 * gen.randn(length)
        self.crop, self.samples = crop, samples
        self.rng = np.random.RandomState(seed)

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        start = self.rng.randint(0, 3 * len(self.signal) // 4 - self.crop)
        x = self.signal[start : start + self.crop]
        y = self.freq[start : start + self.crop].mean()
        return torch.tensor(x, dtype=torch.float32), torch.tensor([10 * y], dtype=torch.float32), start


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    train_set = RandomCrops(40000, seed=0)
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=2)

    rng = np.random.RandomState(5)
    starts = rng.randint(30000, 40000 - 32, 500)
    val_x = torch.tensor(np.stack([train_set.signal[s : s + 32] for s in starts]), dtype=torch.float32)
    val_y = torch.tensor([[10 * train_set.freq[s : s + 32].mean()] for s in starts], dtype=torch.float32)

    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.MSELoss()
    seen = []
    for epoch in range(10):
        model.train()
        running = 0.0
        for x, y, start in train_loader:
            seen.extend(start.tolist())
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(val_x), val_y).item()
        print(f"epoch {epoch} train {running / len(train_loader):.4f} val {val:.4f}")
    return seen


if __name__ == "__main__":
    seen = main()
