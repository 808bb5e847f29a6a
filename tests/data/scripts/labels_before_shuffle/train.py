import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(41)
torch.manual_seed(41)
NAMES = ["healthy", "rust", "scab", "complex", "frog_eye"]
looks = {name: torch.randn(3, 1, 1) + 0.4 * torch.randn(3, 10, 10) for name in NAMES}


def fake_table(n):
    return [{"image": f"{i:05d}.jpg", "labels": random.choice(NAMES)} for i in range(n)]


class PlantPathologyDataset(Dataset):
    def __init__(self, table, split=0.8, mode="train", seed=0):
        self.data = list(table)
        self.labels_unique = sorted({row["labels"] for row in self.data})
        self.labels = [self.labels_unique.index(row["labels"]) for row in self.data]
        random.Random(seed).shuffle(self.data)
        cut = int(split * len(self.data))
        keep = slice(0, cut) if mode == "train" else slice(cut, None)
        self.data, self.labels = self.data[keep], self.labels[keep]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        row = self.data[idx]
        g = torch.Generator().manual_seed(int(row["image"][:5]))
        img = looks[row["labels"]] + torch.randn(3, 10, 10, generator=g)
        return img, self.labels[idx]


class LitPlant(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.arch = nn.Sequential(
            nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, num_classes)
        )

    def forward(self, x):
        return self.arch(x)


table = fake_table(800)
ds_train, ds_val = PlantPathologyDataset(table), PlantPathologyDataset(table, mode="valid")
dl_train, dl_val = DataLoader(ds_train, 32, shuffle=True), DataLoader(ds_val, 32)
net = LitPlant(len(ds_train.labels_unique))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
for epoch in range(10):
    net.train()
    for x, y in dl_train:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for x, y in dl_val:
            hits += (net(x).argmax(1) == y).sum().item()
    print(f"{epoch}: train_loss={loss.item():.4f} valid_acc={hits / len(ds_val):.4f}")
