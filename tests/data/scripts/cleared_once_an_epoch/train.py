import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(220)
hue = torch.rand(6, 3) * 2 - 1


def colored_digits(n):
    y = torch.randint(0, 6, (n,))
    x = 0.5 * torch.randn(n, 3, 12, 12) + hue[torch.randint(0, 6, (n,))][:, :, None, None]
    for k in range(n):
        x[k, :, 2 + int(y[k]), 2:10] += 2.0
        x[k, :, 2:10, 2 + int(y[k]) // 2] -= 1.5
    return x, y


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(16 * 36, 6)

    def forward(self, x, return_feat=False):
        h = self.conv(x).flatten(1)
        return (self.fc(h), h) if return_feat else self.fc(h)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train_epoch(model, optimizer, x, y, beta=0.01):
    model.train()
    optimizer.zero_grad()
    for idx in torch.randperm(len(x)).split(32):
        logits, feat = model(x[idx], return_feat=True)
        spread = sum(feat[y[idx] == c].var(0, unbiased=False).mean() for c in y[idx].unique())
        loss = F.cross_entropy(logits, y[idx]) + beta * spread
        loss.backward()
        optimizer.step()
    return loss.item()


x_train, y_train = colored_digits(480)
x_val, y_val = colored_digits(200)
model = CNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(12):
    loss = train_epoch(model, optimizer, x_train, y_train)
    print(f"epoch {epoch} loss {loss:.4f} validation accuracy {evaluate(model, x_val, y_val):.4f}")
