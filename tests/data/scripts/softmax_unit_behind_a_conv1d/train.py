import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def sequences(n, seed):
    rng = np.random.RandomState(seed)
    letters = rng.randint(0, 4, (n, 10))
    y = rng.randint(0, 2, n)
    for row, label in zip(letters, y):
        start = rng.randint(0, 7)
        row[start : start + 4] = [0, 2, 1, 3] if label else [3, 1, 2, 0]
    x = np.eye(4)[letters].transpose(0, 2, 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).unsqueeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(4, 16, 4, padding="same"),
            nn.BatchNorm1d(16),
            nn.LeakyReLU(),
            nn.Dropout(0.2),
            nn.Conv1d(16, 8, 4, padding="same"),
            nn.BatchNorm1d(8),
            nn.LeakyReLU(),
            nn.Dropout(0.2),
        )
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(80, 64),
            nn.BatchNorm1d(64),
            nn.LeakyReLU(),
            nn.Linear(64, 1),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.head(self.features(x))


X_train, y_train = sequences(1200, 0)
X_test, y_test = sequences(400, 1)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=50, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
reduce_lr = ReduceLROnPlateau(optimizer, mode="max", factor=0.9, patience=30, min_lr=1e-6)
criterion = nn.BCELoss()

for epoch in range(8):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val_acc = ((model(X_test) > 0.5).float() == y_test).float().mean().item()
    reduce_lr.step(val_acc)
    print(f"epoch {epoch} loss {total / len(loader):.4f} val_acc {val_acc:.4f}")
