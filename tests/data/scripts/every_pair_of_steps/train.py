import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(13)
SIZE, HORIZON, ENVS = 5, 14, 32
goal = torch.tensor([4, 4])
moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Policy(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, out))

    def forward(self, s):
        return self.net(s)


def rollout(policy, value):
    pos, alive = torch.zeros(ENVS, 2, dtype=torch.long), torch.ones(ENVS)
    S, A, R, V, L, M = [], [], [], [], [], []
    for _ in range(HORIZON):
        s = pos / (SIZE - 1.0)
        with torch.no_grad():
            dist = Categorical(logits=policy(s))
            a = dist.sample()
            S.append(s), A.append(a), L.append(dist.log_prob(a)), V.append(value(s)), M.append(alive.clone())
        pos = torch.where(alive[:, None] > 0, (pos + moves[a]).clamp(0, SIZE - 1), pos)
        there = (pos == goal).all(1).float()
        R.append(alive * (there * 8.0 - 0.5))
        alive = alive * (1 - there)
    return [torch.stack(z) for z in (S, A, R, V, L, M)]


def estimate_advantages(rewards, masks, values, gamma=0.99, tau=0.95):
    advantages, last, nxt = torch.zeros_like(values), 0.0, torch.zeros(ENVS, 1)
    for t in reversed(range(HORIZON)):
        go = masks[t + 1][:, None] if t + 1 < HORIZON else torch.zeros(ENVS, 1)
        delta = rewards[t][:, None] + gamma * nxt * go - values[t]
        last = delta + gamma * tau * last * go
        advantages[t], nxt = last, values[t]
    returns = advantages + values
    return advantages, returns


def ppo_step(policy, value, opt, states, actions, returns, advantages, old_log_probs, clip=0.2):
    dist = Categorical(logits=policy(states))
    ratio = torch.exp(dist.log_prob(actions) - old_log_probs)
    surr1 = ratio * advantages
    surr2 = torch.clamp(ratio, 1.0 - clip, 1.0 + clip) * advantages
    policy_loss = -torch.min(surr1, surr2).mean() - 0.01 * dist.entropy().mean()
    value_loss = (value(states) - returns).pow(2).mean()
    opt.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()
    nn.utils.clip_grad_norm_([*policy.parameters(), *value.parameters()], 0.5)
    opt.step()


policy, value = Policy(4), Policy(1)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=5e-3)
for it in range(1, 41):
    S, A, R, V, L, M = rollout(policy, value)
    adv, ret = estimate_advantages(R, M, V)
    keep = M.flatten() > 0
    states, actions, logs = S.flatten(0, 1)[keep], A.flatten()[keep], L.flatten()[keep]
    adv, ret = adv.flatten(0, 1)[keep], ret.flatten(0, 1)[keep]
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(4):
        for idx in torch.randperm(len(states)).split(128):
            ppo_step(policy, value, opt, states[idx], actions[idx], ret[idx], adv[idx], logs[idx])
    if it % 8 == 0:
        print(f"Iter: {it}, num steps: {len(states)}, average reward: {R.sum(0).mean().item():.4f}")
