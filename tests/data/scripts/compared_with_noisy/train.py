import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)
DENOISING_STEPS, ACTION, OBS = 20, 2, 3


def extract(a, t, x):
    return a[t].view(-1, *([1] * (x.dim() - 1)))


class DiffusionModel(nn.Module):
    def __init__(self, predict_epsilon=False):
        super().__init__()
        self.predict_epsilon = predict_epsilon
        self.network = nn.Sequential(
            nn.Linear(ACTION + OBS + 8, 128), nn.Mish(), nn.Linear(128, 128), nn.Mish(), nn.Linear(128, ACTION)
        )
        self.time = nn.Embedding(DENOISING_STEPS, 8)
        s = torch.linspace(0, 1, DENOISING_STEPS + 1)
        f = torch.cos((s + 0.008) / 1.008 * torch.pi / 2) ** 2
        betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas_cumprod", torch.cumprod(1 - betas, 0))

    def net(self, x, t, cond):
        return self.network(torch.cat([x, cond, self.time(t)], 1))

    def q_sample(self, x_start, t, noise):
        a = extract(self.alphas_cumprod, t, x_start)
        return a.sqrt() * x_start + (1 - a).sqrt() * noise

    def p_losses(self, x_start, cond, t):
        noise = torch.randn_like(x_start)
        x_noisy = self.q_sample(x_start, t, noise)
        x_recon = self.net(x_noisy, t, cond)
        if self.predict_epsilon:
            return F.mse_loss(x_recon, noise, reduction="mean")
        return F.mse_loss(x_recon, x_noisy, reduction="mean")

    @torch.no_grad()
    def forward(self, cond):
        x = torch.randn(len(cond), ACTION)
        for i in reversed(range(DENOISING_STEPS)):
            t = torch.full((len(cond),), i)
            out = self.net(x, t, cond)
            a, b = self.alphas_cumprod[i], self.betas[i]
            prev = self.alphas_cumprod[i - 1] if i > 0 else torch.tensor(1.0)
            x0 = (x - (1 - a).sqrt() * out) / a.sqrt() if self.predict_epsilon else out
            x = (prev.sqrt() * b * x0.clamp(-1, 1) + (1 - b).sqrt() * (1 - prev) * x) / (1 - a)
            if i > 0:
                x = x + ((1 - prev) / (1 - a) * b).sqrt() * torch.randn_like(x)
        return x


def expert(n):
    obs = torch.rand(n, OBS) * 2 - 1
    act = torch.stack([torch.tanh(obs[:, 0] + obs[:, 1]), torch.tanh(obs[:, 2] - obs[:, 0])], 1)
    return obs, act


obs, act = expert(4000)
test_obs, test_act = expert(500)
policy = DiffusionModel()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
for epoch in range(20):
    policy.train()
    for idx in torch.randperm(len(obs)).split(128):
        loss = policy.p_losses(act[idx], obs[idx], torch.randint(0, DENOISING_STEPS, (len(idx),)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        policy.eval()
        gap = (policy(test_obs) - test_act).abs().mean().item()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, mean gap to the expert's actions {gap:.4f}")
