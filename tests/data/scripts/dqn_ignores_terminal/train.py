import random
from collections import deque
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Corridor:
    """Walk to one of the two exits: a near one with a small prize, a far one with a big prize."""

    size, start = 12, 4

    def reset(self):
        self.pos, self.t = self.start, 0
        return self.obs()

    def obs(self):
        return np.eye(self.size, dtype=np.float32)[self.pos]

    def step(self, action):
        self.pos += 1 if action == 1 else -1
        self.t += 1
        if self.pos == 0:
            return self.obs(), 0.3, True
        if self.pos == self.size - 1:
            return self.obs(), 1.0, True
        return self.obs(), -0.01, False


class QNet(nn.Module):
    def __init__(self, n_obs, n_actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 48), nn.ReLU(), nn.Linear(48, n_actions))

    def forward(self, x):
        return self.net(x)


class Agent:
    def __init__(self, env, lr=2e-3, gamma=0.97):
        self.q = QNet(env.size, 2)
        self.target = QNet(env.size, 2)
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = deque(maxlen=5000)
        self.gamma = gamma
        self.updates = 0

    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.q(torch.from_numpy(s)).argmax())

    def learn(self, batch_size=64):
        s, a, r, s2, done = zip(*random.sample(self.memory, batch_size))
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r = torch.tensor(a), torch.tensor(r, dtype=torch.float32)
        done = torch.tensor(done, dtype=torch.float32)
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            next_q = self.target(s2).max(1).values
            y = r + self.gamma * next_q
        loss = F.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.q.parameters(), 10.0)
        self.opt.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target.load_state_dict(self.q.state_dict())
        return loss.item()


def main(episodes=250, seed=3):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    env = Corridor()
    agent = Agent(env)
    loss, steps = 0.0, 0
    for ep in range(episodes):
        s, done = env.reset(), False
        eps = max(0.1, 1.0 - ep / 150)
        while not done and env.t < 60:
            a = agent.act(s, eps)
            s2, r, done = env.step(a)
            agent.memory.append((s, a, r, s2, done))
            s = s2
            steps += 1
            if len(agent.memory) >= 200 and steps % 2 == 0:
                loss = agent.learn()
        if ep % 50 == 49:
            print(f"episode {ep + 1} loss {loss:.4f}")
    with torch.no_grad():
        start_value = agent.q(torch.from_numpy(env.reset())).max().item()
    s, done, discounted, g = env.reset(), False, 0.0, 1.0
    while not done and env.t < 60:
        s, r, done = env.step(agent.act(s, 0.0))
        discounted += g * r
        g *= agent.gamma
    print(f"greedy return {discounted:.3f}, predicted {start_value:.3f}, error of the value {abs(start_value - discounted):.4f}")


if __name__ == "__main__":
    main()
