"""Train a variational autoencoder on binary digits (Kingma and Welling, 2014).

    python digits_vae.py --data data --out out --seed 11
    python digits_vae.py --data data --out out --resume
    python digits_vae.py --data data --out out --evaluate

train.npz and val.npz have `inputs`, grey pictures as uint8 (N, 1, 28, 28). All losses are in nats per picture.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

import track


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", type=Path, default=Path("data"))
    p.add_argument("--out", type=Path, default=Path("out"))
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--resume", action="store_true")
    p.add_argument("--evaluate", action="store_true")
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--latents", type=int, default=12)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--warmup-steps", type=int, default=100, help="updates until the KL term has its full weight")
    p.add_argument("--eval-every", type=int, default=3, help="epochs")
    p.add_argument("--samples", type=int, default=64)
    return p.parse_args()


# --- data -----------------------------------------------------------------------------------------------------------


class BinaryDigits(Dataset):
    """Pictures of zeros and ones: a pixel is 1 if it is brighter than the threshold."""

    def __init__(self, file, threshold=0.5):
        with np.load(file) as data:
            images = torch.from_numpy(data["inputs"]).float() / 255
        self.images = (images > threshold).float()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index]


# --- model ----------------------------------------------------------------------------------------------------------


class VAE(nn.Module):
    def __init__(self, hidden, latents, pixels=28 * 28):
        super().__init__()
        self.latents = latents
        self.encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(pixels, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2 * latents),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latents, hidden),
            nn.ReLU(),
            nn.Linear(hidden, pixels),
            nn.Unflatten(1, (1, 28, 28)),
        )

    def encode(self, x):
        """Return mean and log-variance of the latents."""
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        return mu, logvar

    def reparameterize(self, mu, logvar, generator=None):
        noise = torch.randn(mu.shape, generator=generator)
        return mu + torch.exp(0.5 * logvar) * noise

    def forward(self, x, generator=None):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar, generator)
        return self.decoder(z), mu, logvar

    @torch.no_grad()
    def sample(self, count, generator=None):
        """Draw pictures (count, 1, 28, 28) from the prior: for each pixel, the probability that it is 1."""
        was_training = self.training
        self.eval()
        z = torch.randn(count, self.latents, generator=generator)
        probs = torch.sigmoid(self.decoder(z))
        self.train(was_training)
        return probs


def elbo_terms(logits, x, mu, logvar):
    """Return reconstruction loss and KL divergence: sums over pixels and latents, averaged over the batch."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").flatten(1).sum(dim=1)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1)
    return reconstruction.mean(), kl.mean()


# --- training -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def evaluate(model, loader, seed=0):
    """Return the negative ELBO per picture and its two parts, with the same noise each time."""
    model.eval()
    g = torch.Generator().manual_seed(seed)
    reconstruction = kl = count = 0
    for x in loader:
        logits, mu, logvar = model(x, g)
        batch_reconstruction, batch_kl = elbo_terms(logits, x, mu, logvar)
        reconstruction += batch_reconstruction.item() * len(x)
        kl += batch_kl.item() * len(x)
        count += len(x)
    reconstruction, kl = reconstruction / count, kl / count
    return {"val_loss": reconstruction + kl, "val_reconstruction": reconstruction, "val_kl": kl}


class Trainer:
    def __init__(self, args, model, train_loader, val_loader):
        self.args, self.model = args, model
        self.train_loader, self.val_loader = train_loader, val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
        self.epoch = self.step = 0

    def save(self):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.train_loader.generator.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": self.epoch,
            "step": self.step,
        }
        self.args.out.mkdir(parents=True, exist_ok=True)
        torch.save(state, self.args.out / "ckpt.pt")

    def restore(self, ckpt):
        self.model.load_state_dict(ckpt["model"])
        self.optimizer.load_state_dict(ckpt["optimizer"])
        self.train_loader.generator.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        self.epoch, self.step = ckpt["epoch"], ckpt["step"]

    def train_epoch(self):
        self.model.train()
        for x in self.train_loader:
            beta = min(1.0, (self.step + 1) / self.args.warmup_steps)
            logits, mu, logvar = self.model(x)
            reconstruction, kl = elbo_terms(logits, x, mu, logvar)
            loss = reconstruction + beta * kl
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
        self.epoch += 1

    def fit(self):
        while self.epoch < self.args.epochs:
            self.train_epoch()
            if self.epoch % self.args.eval_every == 0 or self.epoch == self.args.epochs:
                track.log(evaluate(self.model, self.val_loader), step=self.step)
                self.save()


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    val_loader = DataLoader(BinaryDigits(args.data / "val.npz"), batch_size=128)
    model = VAE(args.hidden, args.latents)
    if args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
        track.log(evaluate(model, val_loader))
        return

    train_loader = DataLoader(
        BinaryDigits(args.data / "train.npz"),
        args.batch_size,
        shuffle=True,
        drop_last=True,
        generator=torch.Generator().manual_seed(args.seed),
    )
    trainer = Trainer(args, model, train_loader, val_loader)
    if args.resume:
        trainer.restore(torch.load(args.out / "ckpt.pt", weights_only=True))
    trainer.fit()

    pictures = model.sample(args.samples, generator=torch.Generator().manual_seed(args.seed))
    np.save(args.out / "samples.npy", (255 * pictures).round().byte().numpy())


if __name__ == "__main__":
    main()
