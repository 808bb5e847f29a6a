import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

SEED = 0
np.random.seed(SEED)
torch.manual_seed(SEED)


class Corridors:
    """Many copies of a corridor. A small prize lies near on the left, a large one far on the right."""

    n_states, start, limit = 11, 3, 25

    def __init__(self, copies):
        self.copies = copies
        self.pos, self.t = np.full(copies, self.start), np.zeros(copies, int)

    def obs(self):
        return torch.eye(self.n_states)[self.pos]

    def step(self, action):
        self.pos = self.pos + np.where(action == 1, 1, -1)
        self.t += 1
        reward = np.where(self.pos == 0, 0.3, np.where(self.pos == self.n_states - 1, 2.0, -0.01))
        done = (self.pos == 0) | (self.pos == self.n_states - 1) | (self.t >= self.limit)
        self.pos[done], self.t[done] = self.start, 0
        return reward, done


class ActorCritic(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(n, 32), nn.Tanh(), nn.Linear(32, 2))
        self.v = nn.Sequential(nn.Linear(n, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, o):
        return Categorical(logits=self.pi(o)), self.v(o).squeeze(-1)


class PPO:
    gamma, lam, clip, entropy_coef, value_coef = 0.97, 0.95, 0.2, 0.05, 0.5

    def __init__(self, env):
        self.env, self.ac = env, ActorCritic(env.n_states)
        self.opt = torch.optim.Adam(self.ac.parameters(), lr=3e-3)

    def rollout(self, horizon=32):
        buf = {k: [] for k in ("obs", "act", "logp", "val", "rew", "done")}
        for _ in range(horizon):
            o = self.env.obs()
            with torch.no_grad():
                dist, v = self.ac(o)
            a = dist.sample()
            r, d = self.env.step(a.numpy())
            for k, x in zip(buf, (o, a, dist.log_prob(a), v, torch.tensor(r).float(), torch.tensor(d).float())):
                buf[k].append(x)
        buf = {k: torch.stack(v) for k, v in buf.items()}
        with torch.no_grad():
            nxt = self.ac(self.env.obs())[1]
        adv, run = torch.zeros_like(buf["rew"]), 0.0
        for t in reversed(range(horizon)):
            delta = buf["rew"][t] + self.gamma * nxt * (1 - buf["done"][t]) - buf["val"][t]
            run = delta + self.gamma * self.lam * (1 - buf["done"][t]) * run
            adv[t], nxt = run, buf["val"][t]
        return {k: v.flatten(0, 1) for k, v in buf.items()}, adv.flatten(), (adv + buf["val"]).flatten()

    def update(self, epochs=4):
        buf, adv, ret = self.rollout()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(epochs):
            dist, v = self.ac(buf["obs"])
            ratio = torch.exp(dist.log_prob(buf["act"]) - buf["logp"])
            pi_loss = -torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv).mean()
            entropy = dist.entropy().mean()
            loss = pi_loss + self.value_coef * (v - ret).pow(2).mean() + self.entropy_coef * entropy
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return buf["rew"].mean().item(), entropy.item()


agent = PPO(Corridors(16))
for it in range(80):
    reward, entropy = agent.update()
    if it % 10 == 9:
        print(f"update {it + 1}: reward per step {reward:.3f} entropy {entropy:.3f}")
env, total = Corridors(200), np.zeros(200)
alive = np.ones(200, bool)
for _ in range(env.limit):
    with torch.no_grad():
        r, d = env.step(agent.ac(env.obs())[0].sample().numpy())
    total += r * alive
    alive &= ~d
print(f"mean return of an episode {total.mean():.4f}")
