import argparse
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def reviews(n, gen, vocab=200, length=20):
    """Bags of word ids; the rating follows from the words with an opinion."""
    weight = torch.zeros(vocab)
    weight[:40] = torch.linspace(-2, 2, 40)
    x = torch.randint(0, vocab, (n, length), generator=gen)
    score = weight[x].sum(1)
    y = (score > 0).long() + (score > 2.5).long()
    return TensorDataset(x, y)


class Rater(nn.Module):
    def __init__(self, vocab=200, dim=32, classes=3):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim, mode="sum")
        self.mlp = nn.Sequential(nn.Dropout(0.5), nn.Linear(dim, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, classes))
        nn.init.normal_(self.emb.weight, std=0.1)

    def forward(self, x):
        return self.mlp(self.emb(x))


class Experiment:
    def __init__(self, args):
        gen = torch.Generator().manual_seed(args.seed)
        torch.manual_seed(args.seed)
        self.train_loader = DataLoader(reviews(3000, gen), batch_size=args.batch_size, shuffle=True)
        self.val_loader = DataLoader(reviews(800, gen), batch_size=200)
        self.model = Rater()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        self.criterion = nn.CrossEntropyLoss()
        self.epochs = args.epochs

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
        return total / len(self.train_loader.dataset)

    def validate(self):
        correct = 0
        with torch.no_grad():
            for x, y in self.val_loader:
                correct += (self.model(x).argmax(1) == y).sum().item()
        return correct / len(self.val_loader.dataset)

    def run(self):
        for epoch in range(self.epochs):
            loss = self.train_epoch()
            acc = self.validate()
            print(f"epoch {epoch:2d} train loss {loss:.4f} val acc {acc:.4f}")
        return acc


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    acc = Experiment(parser.parse_args()).run()
    print(f"validation accuracy {acc:.4f}")
