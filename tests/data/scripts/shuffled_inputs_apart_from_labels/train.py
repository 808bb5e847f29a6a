import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(42)
torch.manual_seed(42)

# three kinds of machine vibration, one channel of 64 samples
n_per_class, length = 300, 64
t = np.linspace(0, 1, length)
signals, labels = [], []
for k, freq in enumerate([3.0, 5.0, 8.0]):
    for _ in range(n_per_class):
        phase = rng.uniform(0, 2 * np.pi)
        s = np.sin(2 * np.pi * (freq + rng.normal(0, 0.2)) * t + phase)
        signals.append(s + rng.normal(0, 0.5, length))
        labels.append(k)
signals = np.array(signals, dtype=np.float32)
labels = np.array(labels)

# mix the classes, then split
rng.shuffle(signals)
rng.shuffle(labels)
n_train = 700
x_train = torch.tensor(signals[:n_train]).unsqueeze(1)
y_train = torch.tensor(labels[:n_train])
x_val = torch.tensor(signals[n_train:]).unsqueeze(1)
y_val = torch.tensor(labels[n_train:])

model = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
    nn.Flatten(), nn.Linear(32, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()
batch_size = 50

for epoch in range(15):
    model.train()
    order = torch.randperm(n_train)
    running = 0.0
    for i in range(0, n_train, batch_size):
        idx = order[i:i + batch_size]
        optimizer.zero_grad()
        loss = loss_fn(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1} train loss {running / (n_train // batch_size):.3f} val acc {acc:.3f}")

print(f"validation accuracy: {acc:.4f}")
