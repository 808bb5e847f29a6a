import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(4)
torch.manual_seed(4)
N_MELS, FRAMES, CLASSES = 24, 32, 6


def spectrogram(label):
    """Two notes of a motif: where they stand and how they move gives the class."""
    s = 0.35 * rng.standard_normal((N_MELS, FRAMES))
    low, high = 3 + 3 * label, 20 - 2 * label
    onset = rng.integers(2, 14)
    for t in range(onset, onset + 12):
        s[low + rng.integers(0, 2), t] += 1.2
        s[high - rng.integers(0, 2), t] += 1.2
    return s


def make(n):
    y = rng.integers(0, CLASSES, n)
    return torch.tensor(np.stack([spectrogram(k) for k in y]), dtype=torch.float32), torch.from_numpy(y)


class SpecAugment(nn.Module):
    def __init__(self, freq=8, time=10, bands=2):
        super().__init__()
        self.freq, self.time, self.bands = freq, time, bands

    def forward(self, s):
        s = s.clone()
        for k in range(len(s)):
            for _ in range(self.bands):
                f = np.random.randint(0, N_MELS - self.freq + 1)
                t = np.random.randint(0, FRAMES - self.time + 1)
                s[k, f : f + self.freq] = 0
                s[k, :, t : t + self.time] = 0
        return s


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.augment = SpecAugment()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d((1, 4)),
            nn.Conv2d(12, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        )
        self.head = nn.Linear(16 * N_MELS, CLASSES)

    def forward(self, s):
        s = self.augment(s)
        h = self.conv(s[:, None]).amax(-1)
        return self.head(h.flatten(1))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


np.random.seed(4)
train_x, train_y = make(480)
val_x, val_y = make(240)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for idx in torch.randperm(len(train_x)).split(32):
        loss = nn.functional.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: train loss {loss.item():.3f}, val accuracy {accuracy(model, val_x, val_y):.4f}")
