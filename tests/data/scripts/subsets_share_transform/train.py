import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(12)
patterns = torch.randn(6, 6, 6)


class Shapes(Dataset):
    def __init__(self, count, transform=None):
        g = torch.Generator().manual_seed(count)
        self.labels = torch.randint(0, 6, (count,), generator=g)
        self.images = 0.4 * torch.randn(count, 1, 10, 10, generator=g)
        for k in range(count):
            r, c = torch.randint(0, 5, (2,), generator=g).tolist()
            self.images[k, 0, r : r + 6, c : c + 6] += patterns[self.labels[k]]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        img = self.images[index]
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[index]


def augment(img):
    dy, dx = torch.randint(0, 10, (2,)).tolist()
    return torch.roll(img, (dy, dx), dims=(1, 2))


def get_dataloaders(batch_size=32, train_fraction=0.5):
    dataset = Shapes(600)
    n_train = int(train_fraction * len(dataset))
    train_dataset, val_dataset = random_split(
        dataset, [n_train, len(dataset) - n_train], generator=torch.Generator().manual_seed(0)
    )
    train_dataset.dataset.transform = augment
    val_dataset.dataset.transform = None
    return DataLoader(train_dataset, batch_size, shuffle=True), DataLoader(val_dataset, 100)


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    return correct / total


if __name__ == "__main__":
    train_loader, val_loader = get_dataloaders()
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(100, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 6)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(80):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: train loss {loss.item():.4f}, val accuracy {evaluate(model, val_loader):.4f}")
