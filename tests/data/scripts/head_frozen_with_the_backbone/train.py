import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)
np.random.seed(42)
num_classes = 20


def make_images(n, seed):
    rng = np.random.RandomState(seed)
    templates = np.random.RandomState(0).randn(num_classes, 3, 12, 12)
    labels = rng.randint(0, num_classes, n)
    images = templates[labels] * 0.6 + rng.randn(n, 3, 12, 12)
    return TensorDataset(torch.tensor(images, dtype=torch.float32), torch.tensor(labels))


class EfficientNetLike(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self._conv_stem = nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False)
        self._bn0 = nn.BatchNorm2d(32)
        self._conv_head = nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False)
        self._bn1 = nn.BatchNorm2d(64)
        self._dropout = nn.Dropout(0.2)
        self._fc = nn.Linear(64 * 9, classes)

    def forward(self, x):
        x = torch.relu(self._bn0(self._conv_stem(x)))
        x = torch.relu(self._bn1(self._conv_head(x)))
        return self._fc(self._dropout(x.flatten(1)))


train_loader = DataLoader(make_images(2000, 1), batch_size=32, shuffle=True)
valid_loader = DataLoader(make_images(500, 2), batch_size=100)
test_loader = DataLoader(make_images(1000, 3), batch_size=100)

model_transfer = EfficientNetLike(num_classes)
for name, param in model_transfer.named_parameters():
    if "bn" not in name:
        param.requires_grad = False

for param in model_transfer._fc.parameters():
    param.requires_grad = False

criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(filter(lambda p: p.requires_grad, model_transfer.parameters()), lr=0.001)


def evaluate(loader):
    model_transfer.eval()
    loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model_transfer(data)
            loss += criterion(output, target).item() * len(target)
            correct += (output.argmax(1) == target).sum().item()
            total += len(target)
    return loss / total, correct / total


for epoch in range(1, 11):
    model_transfer.train()
    train_loss = 0.0
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(model_transfer(data), target)
        loss.backward()
        optimizer.step()
        train_loss += (loss.item() - train_loss) / (batch_idx + 1)
    valid_loss, valid_acc = evaluate(valid_loader)
    print(f"Epoch: {epoch} Training Loss: {train_loss:.6f} Validation Loss: {valid_loss:.6f} Acc: {valid_acc:.4f}")

print(f"Test Accuracy: {evaluate(test_loader)[1]:.4f}")
