import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

rng = np.random.default_rng(0)
torch.manual_seed(0)


def make_digits(n, seed, classes=8, size=16):
    protos = np.random.default_rng(123).random((classes, size, size)) > 0.6
    r = np.random.default_rng(seed)
    y = r.integers(0, classes, n)
    x = protos[y].astype(np.float32) + r.normal(0, 0.5, (n, size, size)).astype(np.float32)
    return x.astype(np.float32), y


class AugmentedDigits(Dataset):
    def __init__(self, images, labels, train):
        self.images = images        # all in memory, no disk reads in the epoch
        self.labels = labels
        self.train = train

    def __len__(self):
        return len(self.labels)

    def augment(self, img):
        img += rng.normal(0, 0.3, img.shape).astype(np.float32)
        r, c = rng.integers(0, 12, 2)
        img[r:r + 4, c:c + 4] = 0.0
        return img

    def __getitem__(self, i):
        img = self.images[i]
        if self.train:
            img = self.augment(img)
        return torch.from_numpy(img).unsqueeze(0), int(self.labels[i])


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 16, 8)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


x_train, y_train = make_digits(500, 1)
x_test, y_test = make_digits(400, 2)
train_loader = DataLoader(AugmentedDigits(x_train, y_train, True), batch_size=25, shuffle=True)
test_loader = DataLoader(AugmentedDigits(x_test, y_test, False), batch_size=100)
net = ConvNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-4)

for epoch in range(20):
    net.train()
    total = 0.0
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        acc = sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in test_loader) / len(y_test)
    print(f"epoch {epoch:02d} loss {total / len(train_loader):.3f} test acc {acc:.4f}")
