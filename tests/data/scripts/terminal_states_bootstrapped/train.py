"""DQN in a corridor: a small treat next to the start, a large one at the far end, pits in between."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, GAMMA = 9, 0.95


class Corridor:
    """Actions: 0 step left, 1 step right, 2 jump two to the right, 3 leave the game."""

    pits = (3, 6)

    def reset(self):
        self.pos, self.t = 0, 0
        return self.obs()

    def obs(self):
        o = np.zeros(LENGTH, dtype=np.float32)
        o[self.pos] = 1.0
        return o

    def step(self, action):
        self.t += 1
        if action == 3:
            return self.obs(), 0.3, True
        self.pos = int(np.clip(self.pos + (-1, 1, 2)[action], 0, LENGTH - 1))
        if self.pos in self.pits:
            return self.obs(), -0.2, True
        if self.pos == LENGTH - 1:
            return self.obs(), 1.0, True
        return self.obs(), -0.02, False


class QNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LENGTH, hidden), nn.ReLU(), nn.Linear(hidden, 4))

    def forward(self, x):
        return self.net(x)


def evaluate(q, episodes=1, limit=40):
    env, total = Corridor(), 0.0
    q.eval()
    for _ in range(episodes):
        s = env.reset()
        for _ in range(limit):
            with torch.no_grad():
                a = q(torch.from_numpy(s)[None]).argmax(1).item()
            s, r, done = env.step(a)
            total += r
            if done:
                break
    q.train()
    return total / episodes


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    env, q, target = Corridor(), QNet(), QNet()
    target.load_state_dict(q.state_dict())
    target.eval()
    optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
    memory = deque(maxlen=5000)
    s, updates = env.reset(), 0
    for step in range(3500):
        eps = max(0.15, 1.0 - step / 2500)
        if random.random() < eps:
            a = random.randrange(4)
        else:
            with torch.no_grad():
                a = q(torch.from_numpy(s)[None]).argmax(1).item()
        s2, r, done = env.step(a)
        memory.append((s, a, r, s2, done))
        s = env.reset() if done or env.t >= 40 else s2
        if step < 300 or step % 2:
            continue
        batch = random.sample(memory, 64)
        bs, ba, br, bs2, bd = (torch.as_tensor(np.array(c)) for c in zip(*batch))
        with torch.no_grad():
            best_next = target(bs2).max(dim=1).values
            y = br.float() + GAMMA * best_next
        q_sa = q(bs).gather(1, ba[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q_sa, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10.0)
        optimizer.step()
        updates += 1
        if updates % 50 == 0:
            target.load_state_dict(q.state_dict())
        if updates % 400 == 0:
            print(f"update {updates} loss {loss.item():.4f} mean Q {q_sa.mean().item():.3f} return {evaluate(q):.3f}")
    print(f"greedy return {evaluate(q):.3f}")


if __name__ == "__main__":
    main()
