"""Train a small CNN on digits with augmentation in worker processes, mixup, and a moving average of the weights.

    python digits_mixup.py --data data --out out --seed 0
    python digits_mixup.py --data data --out out --resume
    python digits_mixup.py --data data --out out --evaluate

Validation is of the averaged network. The average with the highest validation accuracy is kept in ckpt.pt, too; it is
the network that --evaluate loads, and the last figures of a run are its own.
"""

import argparse
import copy
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

import track

EPOCHS = 6
BATCH_SIZE = 64
WORKERS = 2
LR = 0.06
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-3
MIXUP_ALPHA = 0.2
EMA_DECAY = 0.9
MEAN, STD = 0.229, 0.324  # of the training images


# --- data -----------------------------------------------------------------------------------------------------------


class RandomShift:
    """Move an image by up to `most` pixels in each direction; what comes in is black."""

    def __init__(self, most):
        self.most = most

    def __call__(self, image, rng):
        height, width = image.shape
        padded = np.pad(image, self.most)
        top, left = rng.integers(0, 2 * self.most + 1, size=2)
        return padded[top : top + height, left : left + width]


class RandomErasing:
    """With probability p, make a square of the image black."""

    def __init__(self, p, size):
        self.p, self.size = p, size

    def __call__(self, image, rng):
        if rng.random() >= self.p:
            return image
        height, width = image.shape
        top, left = rng.integers(0, height - self.size + 1), rng.integers(0, width - self.size + 1)
        image = image.copy()
        image[top : top + self.size, left : left + self.size] = 0
        return image


class Digits(Dataset):
    """Images (1, 28, 28), normalized, and their labels. The transforms get the uint8 image and the generator `rng`."""

    def __init__(self, path, transforms=(), seed=0):
        with np.load(path) as data:
            self.images, self.labels = data["inputs"], data["labels"]
        self.transforms = transforms
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i, 0]
        for transform in self.transforms:
            image = transform(image, self.rng)
        image = (image.astype(np.float32) / 255 - MEAN) / STD
        return torch.from_numpy(image).unsqueeze(0), int(self.labels[i])


def seed_worker(worker_id):
    """Give each worker draws of its own, which differ from epoch to epoch."""
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def mixup(x, y, alpha):
    """Mix each image with another one of the batch: images, the two labels, and the share of the first one."""
    share = torch.distributions.Beta(alpha, alpha).sample().item()
    other = torch.randperm(len(x))
    return share * x + (1 - share) * x[other], y, y[other], share


# --- model ----------------------------------------------------------------------------------------------------------


class ConvBlock(nn.Module):
    def __init__(self, channels, out_channels, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            ConvBlock(1, width, stride=2),
            ConvBlock(width, 2 * width, stride=2),
            ConvBlock(2 * width, 2 * width, stride=1),
        )
        self.head = nn.Linear(2 * width * 7 * 7, classes)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class EMA:
    """A network whose weights and running statistics are moving averages of those of another one."""

    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.updates = decay, 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        # The first weights are random, so the average forgets them faster.
        decay = min(self.decay, self.updates / (self.updates + 9))
        current = model.state_dict()
        for name, average in self.module.state_dict().items():
            if average.is_floating_point():
                average.lerp_(current[name], 1 - decay)
            else:
                average.copy_(current[name])

    def state_dict(self):
        return {"module": self.module.state_dict(), "updates": self.updates}

    def load_state_dict(self, state):
        self.module.load_state_dict(state["module"])
        self.updates = state["updates"]


# --- training -------------------------------------------------------------------------------------------------------


def train_one_epoch(model, ema, loader, optimizer, scheduler):
    """Return the mean loss."""
    model.train()
    total = count = 0
    for x, y in loader:
        mixed, y_a, y_b, share = mixup(x, y, MIXUP_ALPHA)
        logits = model(mixed)
        loss = share * F.cross_entropy(logits, y_a) + (1 - share) * F.cross_entropy(logits, y_b)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update(model)
        total += loss.item() * len(x)
        count += len(x)
    return total / count


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = correct = count = 0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(dim=1) == y).sum().item()
        count += len(y)
    return {"val_loss": loss / count, "val_accuracy": correct / count}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = Net()
    val_loader = DataLoader(Digits(args.data / "val.npz"), batch_size=128)
    if args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["best"]["model"])
        track.log(evaluate(model, val_loader))
        return

    # The loader draws the order of an epoch and the seeds of its workers from a generator of its own.
    order = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(
        Digits(args.data / "train.npz", [RandomShift(2), RandomErasing(0.5, 6)], args.seed),
        batch_size=BATCH_SIZE,
        shuffle=True,
        drop_last=True,
        num_workers=WORKERS,
        worker_init_fn=seed_worker,
        generator=order,
    )
    ema = EMA(model, EMA_DECAY)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True, fused=True
    )
    steps = EPOCHS * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LR, total_steps=steps, cycle_momentum=False)
    best = {"val_accuracy": -1.0}
    first_epoch = 0
    if args.resume:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
        ema.load_state_dict(ckpt["ema"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        best = ckpt["best"]
        first_epoch = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(first_epoch, EPOCHS):
        train_loss = train_one_epoch(model, ema, train_loader, optimizer, scheduler)
        figures = evaluate(ema.module, val_loader)
        track.log({"train_loss": train_loss, **figures}, step=epoch + 1)
        if figures["val_accuracy"] > best["val_accuracy"]:
            weights = {name: value.clone() for name, value in ema.module.state_dict().items()}
            best = {"model": weights, "epoch": epoch + 1, **figures}
        state = {
            "model": model.state_dict(),
            "ema": ema.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "best": best,
            "epoch": epoch + 1,
        }
        torch.save(state, args.out / "ckpt.pt")

    model.load_state_dict(best["model"])
    track.log(evaluate(model, val_loader), step=best["epoch"])


if __name__ == "__main__":
    main()
