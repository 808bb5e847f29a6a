import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1337)
rng = np.random.RandomState(1337)
N_CLASS = 3


def make_scenes(n, size=20):
    yy, xx = np.mgrid[:size, :size]
    img = rng.randn(n, 3, size, size).astype(np.float32) * 1.2
    lbl = np.zeros((n, size, size), dtype=np.int64)
    for k in range(n):
        for c in (1, 2):
            cy, cx, r = rng.randint(5, size - 5), rng.randint(5, size - 5), rng.randint(3, 6)
            inside = (yy - cy) ** 2 + (xx - cx) ** 2 < r * r
            lbl[k][inside] = c
            img[k, c - 1][inside] += 1.5
    return torch.from_numpy(img), torch.from_numpy(lbl)


class FCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())
        self.conv2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU())
        self.drop = nn.Dropout2d(0.5)
        self.score = nn.Conv2d(72, N_CLASS, 1)

    def forward(self, x):
        a = self.conv1(x)
        b = F.interpolate(self.conv2(a), scale_factor=2, mode="bilinear", align_corners=False)
        return self.score(self.drop(torch.cat([a, b], 1)))


class Trainer:
    def __init__(self, model, optim, train_loader, val_loader, interval_validate):
        self.model, self.optim = model, optim
        self.train_loader, self.val_loader = train_loader, val_loader
        self.interval_validate = interval_validate
        self.iteration = 0

    def validate(self):
        self.model.eval()
        inter, union = torch.zeros(N_CLASS), torch.zeros(N_CLASS)
        with torch.no_grad():
            for data, target in self.val_loader:
                pred = self.model(data).argmax(1)
                for c in range(N_CLASS):
                    inter[c] += ((pred == c) & (target == c)).sum()
                    union[c] += ((pred == c) | (target == c)).sum()
        return (inter / union).mean().item()

    def train_epoch(self):
        self.model.train()
        for data, target in self.train_loader:
            if self.iteration % self.interval_validate == 0:
                self.val_iou = self.validate()
            loss = F.cross_entropy(self.model(data), target)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            self.iteration += 1
        return loss.item()


train_set, val_set = TensorDataset(*make_scenes(64)), TensorDataset(*make_scenes(48))
model = FCN()
optim = torch.optim.Adam(model.parameters(), lr=3e-3)
trainer = Trainer(
    model, optim, DataLoader(train_set, batch_size=8, shuffle=True), DataLoader(val_set, batch_size=32), 8
)
for epoch in range(12):
    loss = trainer.train_epoch()
    print("epoch %d loss %.4f mean IU %.4f" % (epoch, loss, trainer.val_iou))
print("final mean IU: %.4f" % trainer.validate())
