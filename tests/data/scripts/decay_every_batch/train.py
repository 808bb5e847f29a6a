import torch
import torch.nn as nn
from torch.optim import lr_scheduler

SEED, BATCH, EPOCHS = 6, 8, 12


def make_slices(n, generator):
    base = torch.zeros(n, 1, 28, 28)
    gt = torch.zeros(n, 1, 28, 28)
    grid = torch.arange(28.0)
    for i in range(n):
        cy, cx = torch.rand(2, generator=generator) * 16 + 6
        ry, rx = torch.rand(2, generator=generator) * 3 + 2
        cord = ((grid[:, None] - cy) / ry) ** 2 + ((grid[None] - cx) / rx) ** 2 < 1
        gt[i, 0] = cord.float()
        base[i, 0] = cord.float() * 0.8
    return base + 0.5 * torch.randn(base.shape, generator=generator), gt


def dice_loss(pred, target):
    inter = (pred * target).sum()
    return -(2.0 * inter + 1.0) / (pred.sum() + target.sum() + 1.0)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.down = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.outc = nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, x):
        a = self.inc(x)
        return torch.sigmoid(self.outc(torch.cat([a, self.up(self.down(a))], 1)))


def main():
    torch.manual_seed(SEED)
    g = torch.Generator().manual_seed(SEED)
    train_x, train_y = make_slices(160, g)
    val_x, val_y = make_slices(48, g)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(train_x, train_y), batch_size=BATCH, shuffle=True
    )
    model = Unet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(1, EPOCHS + 1):
        model.train()
        total = 0.0
        for input_samples, gt_samples in loader:
            preds = model(input_samples)
            loss = dice_loss(preds, gt_samples)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            out = (model(val_x) > 0.5).float()
        dice = (2 * (out * val_y).sum() / (out.sum() + val_y.sum())).item()
        print(f"Epoch {epoch} training loss {total / len(loader):.4f} validation dice {dice:.4f}")


if __name__ == "__main__":
    main()
