"""Train an image embedding, write a checkpoint, load it in the search service."""
import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

PRODUCTS = 12


def photos(n, seed):
    g = torch.Generator().manual_seed(seed)
    look = torch.randn(PRODUCTS, 3, 12, 12, generator=torch.Generator().manual_seed(5))
    look = F.avg_pool2d(look, 3, 1, 1)
    y = torch.randint(0, PRODUCTS, (n,), generator=g)
    light = 0.6 + 0.8 * torch.rand(n, 1, 1, 1, generator=g)
    background = F.interpolate(torch.randn(n, 3, 3, 3, generator=g), size=12) * 0.4
    return look[y] * light + background + 0.3 * torch.randn(n, 3, 12, 12, generator=g), y


class Embedder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 24, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(24)
        self.conv2 = nn.Conv2d(24, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32 * 9, dim)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return F.normalize(self.fc(x.flatten(1)), dim=1)


class TrainingModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedder = Embedder()
        self.centers = nn.Parameter(torch.randn(PRODUCTS, 24) * 0.1)

    def forward(self, x):
        return 12.0 * self.embedder(x) @ F.normalize(self.centers, dim=1).t()


class SearchService:
    def __init__(self, path, x, y):
        self.model = Embedder()
        checkpoint = torch.load(path, weights_only=True)
        self.model.load_state_dict(checkpoint["model"], strict=False)
        self.model.eval()
        self.labels = y
        with torch.no_grad():
            self.index = self.model(x)

    @torch.no_grad()
    def search(self, x):
        return self.labels[(self.model(x) @ self.index.t()).argmax(1)]


def main(args):
    torch.manual_seed(args.seed)
    x, y = photos(900, 1)
    mean, std = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    train_loader = DataLoader(TensorDataset((x - mean) / std, y), batch_size=36, shuffle=True)
    xv, yv = photos(240, 2)
    xv = (xv - mean) / std
    model = TrainingModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in train_loader:
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(xv).argmax(1) == yv).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {acc:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "embedder.pt")
        torch.save({"model": model.state_dict(), "epoch": args.epochs}, path)
        gallery, gallery_y = photos(120, 3)
        service = SearchService(path, (gallery - mean) / std, gallery_y)
    hit = (service.search(xv) == yv).float().mean().item()
    print(f"share of searches with the right product first {hit:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
