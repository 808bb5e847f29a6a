"""
Trains a small VAE (https://arxiv.org/abs/1312.6114) on binarized 28x28 digits, one file, no framework.

$ python digits_vae.py --data data --out out
$ python digits_vae.py --data data --out out --evaluate   # only the validation ELBO of out/ckpt.pt

It takes a few seconds on a CPU, so there is no code to resume a run.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

import track

# model
n_hidden = 128
n_latent = 12
# optimization
batch_size = 64
n_epochs = 15
learning_rate = 5e-3
kl_warmup_iters = 100 # weight of the KL term goes linearly from 0 to 1
# logging
eval_interval = 3 # epochs
n_samples = 64 # images drawn from the prior at the end


class BinarizedDigits(Dataset):

    def __init__(self, npz):
        with np.load(npz) as f:
            x = f['inputs'] # (N, 1, 28, 28) uint8
        self.x = (torch.from_numpy(x).float() / 255 > 0.5).float()

    def __len__(self):
        return self.x.size(0)

    def __getitem__(self, i):
        return self.x[i]


class VAE(nn.Module):

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(28 * 28, n_hidden), nn.ReLU(), nn.Linear(n_hidden, 2 * n_latent)
        )
        self.decoder = nn.Sequential(
            nn.Linear(n_latent, n_hidden), nn.ReLU(), nn.Linear(n_hidden, 28 * 28), nn.Unflatten(1, (1, 28, 28))
        )

    def encode(self, x):
        h = self.encoder(x)
        return h[:, :n_latent], h[:, n_latent:] # mu, logvar

    def decode(self, z):
        return self.decoder(z)

    def forward(self, x, rng=None):
        mu, logvar = self.encode(x)
        # reparameterization trick: the gradient has to flow to mu and logvar
        std = torch.exp(0.5 * logvar)
        eps = torch.randn(std.shape, generator=rng)
        z = mu + eps * std
        return self.decode(z), mu, logvar


def neg_elbo(logits, x, mu, logvar):
    # both terms in nats per image: sum over pixels / latents, mean over the batch
    bce = F.binary_cross_entropy_with_logits(logits, x, reduction='none')
    bce = bce.sum(dim=(1, 2, 3)).mean()
    # KL(q(z|x) || N(0, I)), appendix B of the paper
    kld = -0.5 * torch.sum(1 + logvar - mu**2 - logvar.exp(), dim=1)
    kld = kld.mean()
    return bce, kld


@torch.no_grad()
def estimate_elbo(model, loader):
    model.eval()
    rng = torch.Generator().manual_seed(0) # same eps at each evaluation
    bce_sum, kld_sum, n = 0.0, 0.0, 0
    for x in loader:
        logits, mu, logvar = model(x, rng)
        bce, kld = neg_elbo(logits, x, mu, logvar)
        bce_sum += bce.item() * x.size(0) # the last batch is smaller
        kld_sum += kld.item() * x.size(0)
        n += x.size(0)
    bce, kld = bce_sum / n, kld_sum / n
    return {'val_loss': bce + kld, 'val_reconstruction': bce, 'val_kl': kld}


@torch.no_grad()
def sample(model, n, rng):
    """pixel probabilities of n images (n, 1, 28, 28)"""
    model.eval()
    z = torch.randn(n, n_latent, generator=rng)
    return model.decode(z).sigmoid()


def train(model, train_loader, val_loader, ckpt_path):
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    it = 0
    t0 = time.time()
    for epoch in range(1, n_epochs + 1):
        model.train()
        for x in train_loader:
            it += 1
            logits, mu, logvar = model(x)
            bce, kld = neg_elbo(logits, x, mu, logvar)
            beta = min(it / kl_warmup_iters, 1.0)
            loss = bce + beta * kld
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        if epoch % eval_interval == 0 or epoch == n_epochs:
            val = estimate_elbo(model, val_loader)
            track.log(val, step=it)
            print(f"iter {it}: train {loss.item():.2f}, val {val['val_loss']:.2f}, {time.time() - t0:.1f}s")
            torch.save({'model': model.state_dict()}, ckpt_path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--out', type=Path, required=True)
    parser.add_argument('--seed', type=int, default=1337)
    parser.add_argument('--evaluate', action='store_true')
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    ckpt_path = args.out / 'ckpt.pt'
    torch.manual_seed(args.seed)
    model = VAE()
    val_loader = DataLoader(BinarizedDigits(args.data / 'val.npz'), batch_size=128)

    if args.evaluate:
        model.load_state_dict(torch.load(ckpt_path, weights_only=True)['model'])
        track.log(estimate_elbo(model, val_loader))
        return

    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    # the shuffling has its own generator, so more or fewer evaluations do not change the batches
    rng = torch.Generator().manual_seed(args.seed)
    train_set = BinarizedDigits(args.data / 'train.npz')
    train_loader = DataLoader(train_set, batch_size, shuffle=True, drop_last=True, generator=rng)
    train(model, train_loader, val_loader, ckpt_path)

    x = sample(model, n_samples, torch.Generator().manual_seed(args.seed))
    np.save(args.out / 'samples.npy', (x * 255).round().byte().numpy())


if __name__ == '__main__':
    main()
