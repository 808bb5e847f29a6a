import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(3)
torch.manual_seed(3)
centers = np.random.randn(3, 10)


def make_multilabel(n):
    y = (np.random.rand(n, 3) < 0.4).astype(np.float32)
    x = y @ centers + 1.8 * np.random.randn(n, 10)
    return x.astype(np.float32), y


class MultilabelDataset(Dataset):
    def __init__(self, X, y):
        self.X, self.y = torch.from_numpy(X), torch.from_numpy(y)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, idx):
        return self.X[idx], self.y[idx]


class MultilabelNetwork(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.fc1 = nn.Linear(input_size, hidden_size)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(hidden_size, output_size)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        x = self.relu(self.fc1(x))
        x = self.fc2(x)
        x = self.sigmoid(x)
        return x


X_train, y_train = make_multilabel(1000)
X_test, y_test = make_multilabel(400)
train_loader = DataLoader(MultilabelDataset(X_train, y_train), batch_size=25, shuffle=True)
model = MultilabelNetwork(10, 20, 3)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    for X, y in train_loader:
        optimizer.zero_grad()
        y_pred = model(X)
        loss = loss_fn(y_pred, y)
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch}, loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    y_test_pred = model(torch.from_numpy(X_test)).round().numpy()
print(f"all labels of a test row right: {np.mean((y_test_pred == y_test).all(1)):.4f}")
