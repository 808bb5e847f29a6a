"""Segment cells in microscope pictures with a small U-Net (Ronneberger et al., 2015).

    python cells_unet.py --data data --out out --seed 7
    python cells_unet.py --data data --out out --resume
    python cells_unet.py --data data --out out --evaluate

train.npz and val.npz have `inputs`, uint8 (N, 1, H, W), and `labels`, their masks of 0 and 1 in the same shape.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

import track

CROP = 32
WIDTHS = (6, 12, 24)
DROPOUT = 0.1
BATCH_SIZE = 8
EPOCHS = 5
LR = 1e-2
WEIGHT_DECAY = 1e-2
WORKERS = 2


# --- data -----------------------------------------------------------------------------------------------------------


class CellDataset(Dataset):
    """Pictures and masks as floats. With a crop size, each pair is cropped and flipped at random."""

    def __init__(self, file, mean, std, crop=None):
        with np.load(file) as data:
            images, masks = data["inputs"], data["labels"]
        self.images = (torch.from_numpy(images).float() / 255 - mean) / std
        self.masks = torch.from_numpy(masks).float()
        self.crop = crop

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image, mask = self.images[index], self.masks[index]
        if self.crop is None:
            return image, mask
        # Both go through the same geometry: stack them, and take them apart at the end.
        pair = torch.stack([image, mask])
        top = int(torch.randint(pair.size(-2) - self.crop + 1, ()))
        left = int(torch.randint(pair.size(-1) - self.crop + 1, ()))
        pair = pair[..., top : top + self.crop, left : left + self.crop]
        if torch.rand(()) < 0.5:
            pair = pair.flip(-1)
        if torch.rand(()) < 0.5:
            pair = pair.flip(-2)
        image, mask = pair.unbind()
        return image, mask


def pixel_statistics(file):
    """Return mean and standard deviation of the pixels in a file."""
    with np.load(file) as data:
        pixels = data["inputs"] / 255
    return float(pixels.mean()), float(pixels.std())


# --- model ----------------------------------------------------------------------------------------------------------


class DoubleConv(nn.Sequential):
    def __init__(self, c_in, c_out):
        super().__init__(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_out, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
        )


class Up(nn.Module):
    """Double the resolution, and join the features that the encoder had there."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.up = nn.ConvTranspose2d(c_in, c_out, 2, stride=2)
        self.conv = DoubleConv(2 * c_out, c_out)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], dim=1))


class UNet(nn.Module):
    """Logits (B, 1, H, W) of pictures (B, 1, H, W); H and W are multiples of 2 ** (len(widths) - 1)."""

    def __init__(self, widths, dropout):
        super().__init__()
        self.stem = DoubleConv(1, widths[0])
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in pairwise(widths))
        self.drop = nn.Dropout2d(dropout)
        self.up = nn.ModuleList(Up(a, b) for a, b in pairwise(reversed(widths)))
        self.head = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(F.max_pool2d(x, 2))
        x = self.drop(x)
        for up in self.up:
            x = up(x, skips.pop())
        return self.head(x)


# --- loss -----------------------------------------------------------------------------------------------------------


def dice_loss(logits, masks, smooth=1.0):
    """Return 1 - soft Dice of each picture, averaged over the batch."""
    probs, masks = torch.sigmoid(logits).flatten(1), masks.flatten(1)
    overlap = (probs * masks).sum(dim=1)
    dice = (2 * overlap + smooth) / (probs.sum(dim=1) + masks.sum(dim=1) + smooth)
    return (1 - dice).mean()


def segmentation_loss(logits, masks):
    return F.binary_cross_entropy_with_logits(logits, masks) + dice_loss(logits, masks)


# --- training -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def evaluate(model, loader):
    """Return the mean loss of whole pictures, and the Dice coefficient of all their pixels together."""
    model.eval()
    loss = images = overlap = total = 0
    for x, masks in loader:
        logits = model(x)
        loss += segmentation_loss(logits, masks).item() * len(x)
        images += len(x)
        predicted = logits > 0
        overlap += (predicted & (masks > 0.5)).sum().item()
        total += predicted.sum().item() + (masks > 0.5).sum().item()
    return {"val_loss": loss / images, "val_dice": 2 * overlap / max(1, total)}


def train_epoch(model, loader, optimizer, scheduler):
    model.train()
    for x, masks in loader:
        loss = segmentation_loss(model(x), masks)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    mean, std = pixel_statistics(args.data / "train.npz")
    val_loader = DataLoader(CellDataset(args.data / "val.npz", mean, std), batch_size=16)
    model = UNet(WIDTHS, DROPOUT)

    ckpt = None
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
    if args.evaluate:
        track.log(evaluate(model, val_loader))
        return

    # The workers' seeds come from this generator, too, so its state is all that the order and the crops depend on.
    order = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(
        CellDataset(args.data / "train.npz", mean, std, crop=CROP),
        batch_size=BATCH_SIZE,
        shuffle=True,
        drop_last=True,
        num_workers=WORKERS,
        generator=order,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_loader))
    epoch, best = 0, 0.0
    if ckpt is not None:
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        epoch, best = ckpt["epoch"], ckpt["best"]

    args.out.mkdir(parents=True, exist_ok=True)
    while epoch < EPOCHS:
        train_epoch(model, train_loader, optimizer, scheduler)
        epoch += 1
        figures = evaluate(model, val_loader)
        track.log(figures, step=epoch * len(train_loader))
        if figures["val_dice"] > best:
            best = figures["val_dice"]
            torch.save({"model": model.state_dict(), "dice": best}, args.out / "best.pt")
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch,
            "best": best,
        }
        torch.save(state, args.out / "ckpt.pt")


if __name__ == "__main__":
    main()
