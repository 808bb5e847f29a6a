import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

NUM_CLASSES = 6


def build_split(per_class, generator):
    """Reads class folder after class folder, as on disk."""
    images, labels = [], []
    protos = torch.randn(NUM_CLASSES, 1, 16, 16, generator=torch.Generator().manual_seed(99))
    protos = nn.functional.avg_pool2d(protos, 3, 1, 1) * 2
    for c in range(NUM_CLASSES):
        noise = torch.randn(per_class, 1, 16, 16, generator=generator) * 0.8
        images.append(protos[c] + noise)
        labels.append(torch.full((per_class,), c))
    return TensorDataset(torch.cat(images), torch.cat(labels))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 4 * 4, NUM_CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    seen, loss_sum = 0, 0.0
    for images, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        seen += labels.size(0)
        loss_sum += loss.item() * labels.size(0)
    return loss_sum / seen


def validate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in loader:
            correct += (model(images).argmax(dim=1) == labels).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    train_set = build_split(96, g)
    val_set = build_split(50, g)
    train_loader = DataLoader(train_set, batch_size=32, num_workers=0)
    val_loader = DataLoader(val_set, batch_size=100)

    model = ConvNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    for epoch in range(5):
        loss = train_one_epoch(model, train_loader, optimizer, criterion)
        scheduler.step()
        acc = validate(model, val_loader)
        print(f"[{epoch}] train_loss={loss:.4f} val_acc={acc:.4f}")
    print(f"val accuracy: {acc:.4f}")


if __name__ == "__main__":
    main()
