import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
rng = np.random.default_rng(9)

TAGS = ["python", "sql", "linux", "docker", "pandas", "regex"]
VOCAB = 80


def posts(n):
    """Bag of words of forum posts, each with one to three tags."""
    topic_words = np.random.default_rng(0).dirichlet(np.full(VOCAB, 0.12), len(TAGS))
    x = np.zeros((n, VOCAB), dtype=np.float32)
    y = np.zeros((n, len(TAGS)), dtype=np.float32)
    for i in range(n):
        tags = rng.choice(len(TAGS), rng.integers(1, 4), replace=False)
        y[i, tags] = 1
        mix = 0.85 * topic_words[tags].mean(0) + 0.15 / VOCAB
        x[i] = rng.multinomial(40, mix / mix.sum())
    return torch.from_numpy(np.log1p(x)), torch.from_numpy(y)


class TagModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(VOCAB, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, len(TAGS)))

    def forward(self, x):
        return self.net(x)


def micro_f1(model, loader, threshold=0.5):
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for x, y in loader:
            pred = torch.sigmoid(model(x)) > threshold
            truth = y.bool()
            tp += (pred & truth).sum().item()
            fp += (pred & ~truth).sum().item()
            fn += (~pred & truth).sum().item()
    return 2 * tp / (2 * tp + fp + fn)


train_loader = DataLoader(TensorDataset(*posts(2000)), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(*posts(500)), batch_size=100)
model = TagModel()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(15):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch + 1:2d} loss {running / len(train_loader):.4f} val f1 {micro_f1(model, val_loader):.4f}")

print("val micro F1:", round(micro_f1(model, val_loader), 4))
