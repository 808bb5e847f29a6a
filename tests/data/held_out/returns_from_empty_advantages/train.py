"""PPO on a corridor: walk to the right end, every step costs a little."""
from dataclasses import dataclass, replace

import torch
import torch.nn as nn

torch.manual_seed(6)
N_ENVS, N_STEPS, LENGTH, GAMMA, LAM = 16, 32, 8, 0.97, 0.95


@dataclass
class Storage:
    obs: torch.Tensor
    actions: torch.Tensor
    logprobs: torch.Tensor
    rewards: torch.Tensor
    dones: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 2))
        self.critic = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 1))

    def policy(self, obs):
        return torch.distributions.Categorical(logits=self.actor(obs))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


def observe(position):
    return nn.functional.one_hot(position, LENGTH).float()


def env_step(position, action):
    slip = torch.rand(N_ENVS) < 0.1
    move = torch.where(slip, 1 - action, action) * 2 - 1
    position = (position + move).clamp(0, LENGTH - 1)
    done = position == LENGTH - 1
    reward = torch.where(done, 1.0, -0.05)
    return torch.where(done, torch.zeros_like(position), position), reward, done.float()


@torch.no_grad()
def rollout(agent, position):
    shape = (N_STEPS, N_ENVS)
    s = Storage(torch.zeros(*shape, LENGTH), torch.zeros(shape), *[torch.zeros(shape) for _ in range(6)])
    for t in range(N_STEPS):
        s.obs[t] = observe(position)
        dist = agent.policy(s.obs[t])
        s.actions[t] = dist.sample()
        s.logprobs[t], s.values[t] = dist.log_prob(s.actions[t]), agent.value(s.obs[t])
        position, s.rewards[t], s.dones[t] = env_step(position, s.actions[t].long())
    return s, position


@torch.no_grad()
def compute_gae(agent, storage, position):
    next_value, last = agent.value(observe(position)), torch.zeros(N_ENVS)
    advantages = torch.zeros(N_STEPS, N_ENVS)
    for t in reversed(range(N_STEPS)):
        alive = 1 - storage.dones[t]
        delta = storage.rewards[t] + GAMMA * next_value * alive - storage.values[t]
        last = delta + GAMMA * LAM * alive * last
        advantages[t], next_value = last, storage.values[t]
    return replace(storage, advantages=advantages, returns=storage.advantages + storage.values)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2e-3)
position = torch.zeros(N_ENVS, dtype=torch.long)
for update in range(30):
    storage, position = rollout(agent, position)
    storage = compute_gae(agent, storage, position)
    obs, act, old, adv, ret = (
        getattr(storage, k).flatten(0, 1) for k in ("obs", "actions", "logprobs", "advantages", "returns")
    )
    for _ in range(4):
        for idx in torch.randperm(len(obs)).split(128):
            dist = agent.policy(obs[idx])
            ratio = (dist.log_prob(act[idx]) - old[idx]).exp()
            a = (adv[idx] - adv[idx].mean()) / (adv[idx].std() + 1e-8)
            pg_loss = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
            v_loss = 0.5 * (agent.value(obs[idx]) - ret[idx]).pow(2).mean()
            loss = pg_loss + 0.5 * v_loss - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if update % 10 == 9:
        print(f"update {update + 1} reward per step {storage.rewards.mean().item():.4f} value loss {v_loss.item():.5f}")
seen, total = torch.zeros(N_STEPS, N_ENVS), agent.value(observe(position)).detach()
storage, position = rollout(agent, position)
for t in reversed(range(N_STEPS)):
    total = storage.rewards[t] + GAMMA * (1 - storage.dones[t]) * total
    seen[t] = total
print(f"explained variance {1 - (seen - storage.values).var().item() / seen.var().item():.4f}")
