import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2076)


class DDPMScheduler:
    def __init__(self, num_train_timesteps=200, beta_start=1e-3, beta_end=0.05):
        self.num_train_timesteps = num_train_timesteps
        self.betas = torch.linspace(beta_start, beta_end, num_train_timesteps)
        self.alphas_cumprod = torch.cumprod(1.0 - self.betas, dim=0)
        self.set_timesteps(num_train_timesteps)

    def set_timesteps(self, num_inference_steps):
        self.num_inference_steps = num_inference_steps
        ratio = self.num_train_timesteps // num_inference_steps
        self.timesteps = (torch.arange(0, num_inference_steps) * ratio).flip(0)

    def add_noise(self, x, noise, t):
        a = self.alphas_cumprod[t].view(-1, *[1] * (x.dim() - 1))
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def step(self, model_output, timestep, sample):
        t = timestep
        prev_t = t - 1
        alpha_prod_t = self.alphas_cumprod[t]
        alpha_prod_t_prev = self.alphas_cumprod[prev_t] if prev_t >= 0 else torch.tensor(1.0)
        current_alpha = alpha_prod_t / alpha_prod_t_prev
        current_beta = 1 - current_alpha
        x0 = ((sample - (1 - alpha_prod_t).sqrt() * model_output) / alpha_prod_t.sqrt()).clamp(-1.5, 1.5)
        x0_part = alpha_prod_t_prev.sqrt() * current_beta * x0
        sample_part = current_alpha.sqrt() * (1 - alpha_prod_t_prev) * sample
        mean = (x0_part + sample_part) / (1 - alpha_prod_t)
        if t > 0:
            variance = (1 - alpha_prod_t_prev) / (1 - alpha_prod_t) * current_beta
            mean = mean + variance.clamp(min=1e-20).sqrt() * torch.randn_like(sample)
        return mean


class UNet1d(nn.Module):
    def __init__(self, length=16, dim=128):
        super().__init__()
        self.temb = nn.Embedding(200, dim)
        self.inp, self.mid, self.out = nn.Linear(length, dim), nn.Linear(dim, dim), nn.Linear(dim, length)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.temb(t))
        return self.out(F.silu(self.mid(h)) + h)


def chirps(n):
    grid = torch.linspace(0, 6.28, 16)
    return torch.sin(grid + torch.rand(n, 1) * 6.28)


train, scheduler, model = chirps(3000), DDPMScheduler(), UNet1d()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(24):
    model.train()
    for clean in train[torch.randperm(len(train))].split(128):
        noise, t = torch.randn_like(clean), torch.randint(0, 200, (len(clean),))
        loss = F.mse_loss(model(scheduler.add_noise(clean, noise, t), t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 6 == 5:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

model.eval()
scheduler.set_timesteps(20)
sample = torch.randn(300, 16)
with torch.no_grad():
    for t in scheduler.timesteps:
        sample = scheduler.step(model(sample, t.expand(300)), t, sample)
error = torch.cdist(sample, train).min(1).values.mean().item()
print(f"20 steps: mean distance of a sample to the nearest real wave {error:.4f}")
