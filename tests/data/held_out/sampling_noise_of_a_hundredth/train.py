import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)

batch_size = 50
side = 8
original_dim = side * side
latent_dim = 4
intermediate_dim = 96
epochs = 25
epsilon_std = 0.01


def crosses(n):
    g = torch.arange(side)
    r, c = torch.randint(0, side, (2, n))
    x = (g[None, :, None] == r[:, None, None]) | (g[None, None, :] == c[:, None, None])
    flip = torch.rand(n, side, side) < 0.02
    return (x ^ flip).float().flatten(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.Linear(original_dim, intermediate_dim)
        self.z_mean = nn.Linear(intermediate_dim, latent_dim)
        self.z_log_var = nn.Linear(intermediate_dim, latent_dim)
        self.decoder_h = nn.Linear(latent_dim, intermediate_dim)
        self.decoder_mean = nn.Linear(intermediate_dim, original_dim)

    def encode(self, x):
        h = F.relu(self.h(x))
        return self.z_mean(h), self.z_log_var(h)

    def sampling(self, z_mean, z_log_var):
        epsilon = torch.randn_like(z_mean) * epsilon_std
        return z_mean + torch.exp(z_log_var / 2) * epsilon

    def decode(self, z):
        return self.decoder_mean(F.relu(self.decoder_h(z)))


def vae_loss(x, logits, z_mean, z_log_var):
    xent_loss = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
    kl_loss = -0.5 * torch.sum(1 + z_log_var - z_mean**2 - torch.exp(z_log_var), dim=-1)
    return (xent_loss + kl_loss).mean()


@torch.no_grad()
def negative_bound(vae, x, samples=50):
    """Variational bound of the test set, averaged over draws from the posterior that the encoder describes."""
    m, lv = vae.encode(x)
    total = 0.0
    for _ in range(samples):
        z = torch.normal(m, torch.exp(lv / 2))
        total += vae_loss(x, vae.decode(z), m, lv).item()
    return total / samples


x_train, x_test = crosses(2000), crosses(300)
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(epochs):
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(batch_size):
        x = x_train[idx]
        m, lv = vae.encode(x)
        loss = vae_loss(x, vae.decode(vae.sampling(m, lv)), m, lv)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 4 == 0:
        print("epoch", epoch, "loss %.2f" % (total * batch_size / len(x_train)))
print("test negative bound %.4f nats" % negative_bound(vae, x_test))
