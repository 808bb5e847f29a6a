import torch
import torch.nn as nn

torch.manual_seed(0)
latent_dim, batch_size, steps = 8, 128, 1500


def real_samples(n):
    """Two-dimensional correlated measurements."""
    z = torch.randn(n, 2)
    x = 1.5 + z[:, :1] * 0.8
    y = -1.0 + 0.6 * z[:, :1] + 0.3 * z[:, 1:]
    return torch.cat([x, y], 1)


generator = nn.Sequential(
    nn.Linear(latent_dim, 48), nn.ReLU(),
    nn.Linear(48, 48), nn.ReLU(),
    nn.Linear(48, 2),
)
discriminator = nn.Sequential(
    nn.Linear(2, 48), nn.LeakyReLU(0.2),
    nn.Linear(48, 48), nn.LeakyReLU(0.2),
    nn.Linear(48, 1),
)
adversarial_loss = nn.BCEWithLogitsLoss()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
valid = torch.ones(batch_size, 1)
fake = torch.zeros(batch_size, 1)


def sliced_distance(a, b, directions=64):
    theta = torch.randn(2, directions)
    theta = theta / theta.norm(dim=0)
    pa, pb = (a @ theta).sort(0).values, (b @ theta).sort(0).values
    return (pa - pb).abs().mean().item()


generator.train()
discriminator.train()
for step in range(steps):
    real = real_samples(batch_size)
    z = torch.randn(batch_size, latent_dim)
    generated = generator(z).detach()

    # discriminator
    optimizer_D.zero_grad()
    d_loss = 0.5 * (adversarial_loss(discriminator(real), valid)
                    + adversarial_loss(discriminator(generated), fake))
    d_loss.backward()
    optimizer_D.step()

    # generator
    optimizer_G.zero_grad()
    g_loss = adversarial_loss(discriminator(generated), valid)
    g_loss.backward()
    optimizer_G.step()

    if step % 250 == 0:
        print(f"[{step}/{steps}] D loss {d_loss.item():.3f} G loss {g_loss.item():.3f}")

generator.eval()
with torch.no_grad():
    samples = generator(torch.randn(2000, latent_dim))
print("mean of samples", samples.mean(0).tolist())
print(f"sliced distance to data {sliced_distance(samples, real_samples(2000)):.4f}")
