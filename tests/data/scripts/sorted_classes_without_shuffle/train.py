import argparse
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


class LetterFolder(Dataset):
    """Like an image folder: goes through the class directories one after the other."""

    def __init__(self, per_class, seed, n_classes=6, size=14):
        proto_rng = np.random.default_rng(99)
        protos = proto_rng.normal(size=(n_classes, 1, size, size))
        rng = np.random.default_rng(seed)
        self.samples = []
        for label in range(n_classes):
            for _ in range(per_class):
                shift = tuple(rng.integers(-1, 2, 2))
                img = np.roll(protos[label], shift, axis=(1, 2)) + rng.normal(0, 0.8, (1, size, size))
                self.samples.append((img.astype(np.float32), label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        img, label = self.samples[i]
        return torch.from_numpy(img), label


def build_model(n_classes=6):
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(24 * 9, n_classes))


def accuracy(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--batch", type=int, default=20)
    opt = parser.parse_args()
    torch.manual_seed(5)

    train_loader = DataLoader(LetterFolder(120, seed=1), batch_size=opt.batch)
    test_loader = DataLoader(LetterFolder(50, seed=2), batch_size=100)
    model = build_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr, momentum=0.9)
    for epoch in range(opt.epochs):
        model.train()
        total = 0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"Epoch {epoch + 1}/{opt.epochs} train loss {total / len(train_loader):.4f}")
    print(f"Test accuracy {accuracy(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
