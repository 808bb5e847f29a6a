"""Fine-tune a classifier pretrained on 10 textures for 6 new ones."""
import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def textures(classes, per_class, seed, bank_seed):
    g = torch.Generator().manual_seed(seed)
    bank = torch.randn(classes, 1, 5, 5, generator=torch.Generator().manual_seed(bank_seed))
    x, y = [], []
    for c in range(classes):
        noise = torch.randn(per_class, 1, 20, 20, generator=g)
        x.append(nn.functional.conv2d(noise, bank[c : c + 1]) / 5)
        y += [c] * per_class
    return TensorDataset(torch.cat(x), torch.tensor(y))


class TextureNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 24, 5),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, stride=2),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        return self.fc(self.backbone(x))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def fit(model, optimizer, loader, epochs):
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"  epoch {epoch} loss {total / len(loader):.3f}")


def pretrain():
    model = TextureNet(10)
    loader = DataLoader(textures(10, 60, 0, 100), batch_size=40, shuffle=True)
    print("pretraining")
    fit(model, torch.optim.Adam(model.parameters(), lr=3e-3), loader, 4)
    return copy.deepcopy(model.state_dict())


def finetune(weights):
    model = TextureNet(10)
    model.load_state_dict(weights)
    for p in model.backbone[:3].parameters():
        p.requires_grad = False
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in model.backbone.parameters() if p.requires_grad], "lr": 1e-4},
            {"params": model.fc.parameters(), "lr": 1e-2},
        ],
        weight_decay=1e-3,
    )
    model.fc = nn.Linear(model.fc.in_features, 6)

    train_loader = DataLoader(textures(6, 70, 1, 200), batch_size=20, shuffle=True)
    val_loader = DataLoader(textures(6, 40, 2, 200), batch_size=120)
    print("fine-tuning")
    fit(model, optimizer, train_loader, 7)
    return accuracy(model, val_loader)


if __name__ == "__main__":
    torch.manual_seed(0)
    print(f"validation accuracy on the new textures {finetune(pretrain()):.3f}")
