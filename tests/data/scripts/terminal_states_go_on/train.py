import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(2)
np.random.seed(2)
torch.manual_seed(2)
GAMMA, LIMIT = 0.95, 60


class Balance:
    """Keep a marble on a tilting rail; one point for each step that it stays on."""

    def reset(self):
        self.t, self.s = 0, np.random.uniform(-0.2, 0.2, 2)
        return self.s.copy()

    def step(self, action):
        x, v = self.s
        v += (0.12 if action else -0.12) + 0.25 * x + 0.02 * np.random.randn()
        x += 0.2 * v
        self.s, self.t = np.array([x, v]), self.t + 1
        fallen = abs(x) > 1.0
        return self.s.copy(), 1.0, fallen, fallen or self.t >= LIMIT


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, x):
        return self.layers(x)


class DQNAgent:
    def __init__(self):
        self.current, self.target = DQN(), DQN()
        self.target.load_state_dict(self.current.state_dict())
        self.optimizer = torch.optim.Adam(self.current.parameters(), lr=1e-3)
        self.buffer = deque(maxlen=5000)

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return self.current(torch.tensor(state, dtype=torch.float32)).argmax().item()

    def learn(self, batch_size=64):
        batch = random.sample(self.buffer, batch_size)
        state, action, reward, next_state, done = (
            torch.tensor(np.array(z), dtype=torch.float32) for z in zip(*batch)
        )
        q = self.current(state).gather(1, action.long()[:, None]).squeeze(1)
        with torch.no_grad():
            next_q = self.target(next_state).max(1).values
        expected = reward + GAMMA * next_q
        loss = F.smooth_l1_loss(q, expected)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def play(agent, episodes):
    env, lengths = Balance(), []
    for _ in range(episodes):
        state, over, n = env.reset(), False, 0
        while not over:
            state, _, _, over = env.step(agent.act(state, 0.0))
            n += 1
        lengths.append(n)
    return float(np.mean(lengths))


env, agent, steps = Balance(), DQNAgent(), 0
state = env.reset()
while steps < 2400:
    epsilon = max(0.1, 1.0 - steps / 1000)
    action = agent.act(state, epsilon)
    next_state, reward, fallen, over = env.step(action)
    agent.buffer.append((state, action, reward, next_state, float(fallen)))
    state = env.reset() if over else next_state
    steps += 1
    if len(agent.buffer) >= 200:
        loss = agent.learn()
    if steps % 100 == 0:
        agent.target.load_state_dict(agent.current.state_dict())
    if steps % 800 == 0:
        print(f"step {steps} loss {loss:.4f} mean length of 20 greedy episodes {play(agent, 20):.2f}")
