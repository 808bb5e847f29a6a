import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)


def volumes(n, size=12):
    """Small scans with one bright organ of random shape."""
    grid = torch.stack(torch.meshgrid(*[torch.arange(size)] * 3, indexing="ij")).float()
    centre = 3 + (size - 6) * torch.rand(n, 3)
    axes = 2 + 2 * torch.rand(n, 3)
    d = ((grid[None] - centre[:, :, None, None, None]) / axes[:, :, None, None, None]) ** 2
    mask = (d.sum(1, keepdim=True) < 1).float()
    return 0.8 * mask + 0.5 * torch.randn(n, 1, size, size, size), mask


def dice_loss(outputs, target, eps=1.0):
    p = torch.sigmoid(outputs).flatten(1)
    t = target.flatten(1)
    intersection = (p * t).sum(1)
    dice = (2 * intersection + eps) / (p.sum(1) + t.sum(1) + eps)
    return dice.mean()


class SmallVNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.inp = nn.Sequential(nn.Conv3d(1, w, 3, padding=1), nn.ReLU())
        self.down = nn.Sequential(nn.Conv3d(w, 2 * w, 2, 2), nn.ReLU(), nn.Conv3d(2 * w, 2 * w, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose3d(2 * w, w, 2, 2)
        self.out = nn.Conv3d(2 * w, 1, 1)

    def forward(self, x):
        a = self.inp(x)
        return self.out(torch.cat([a, self.up(self.down(a))], 1))


class Trainer:
    def __init__(self, model, lr=3e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def iteration(self, batch):
        x, y = batch
        return dice_loss(self.model(x), y)

    def training_epoch(self, loader):
        self.model.train()
        losses = []
        for batch in loader:
            loss = self.iteration(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def score(self, loader):
        self.model.eval()
        inter = total = 0.0
        for x, y in loader:
            p = (self.model(x) > 0).float()
            inter, total = inter + (p * y).sum().item(), total + (p.sum() + y.sum()).item()
        return 2 * inter / total


train_loader = DataLoader(TensorDataset(*volumes(80)), batch_size=8, shuffle=True)
val_loader = DataLoader(TensorDataset(*volumes(30)), batch_size=30)
trainer = Trainer(SmallVNet())
for epoch in range(10):
    print(f"epoch {epoch + 1}, loss {trainer.training_epoch(train_loader):.4f}, dice {trainer.score(val_loader):.4f}")
