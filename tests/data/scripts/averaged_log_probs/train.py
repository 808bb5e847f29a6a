import random

import numpy as np
import torch
import torch.nn as nn
from torch.distributions.normal import Normal

random.seed(5)
np.random.seed(5)
torch.manual_seed(5)


class Reach:
    """A point is pushed along a line towards a lamp; the nearer, the better."""

    def reset(self):
        self.x, self.lamp, self.t = 0.0, np.random.uniform(-1.5, 1.5), 0
        return np.array([self.x, self.lamp])

    def step(self, action):
        self.x += float(np.clip(action, -0.5, 0.5))
        self.t += 1
        return np.array([self.x, self.lamp]), 1.0 - abs(self.x - self.lamp), self.t >= 15


class Policy_Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared_net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.policy_mean_net, self.policy_stddev_net = nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, x):
        h = self.shared_net(x.float())
        return self.policy_mean_net(h), torch.log(1 + torch.exp(self.policy_stddev_net(h)))


class REINFORCE:
    def __init__(self):
        self.learning_rate, self.gamma, self.eps = 3e-3, 0.8, 1e-6
        self.probs, self.rewards = [], []
        self.net = Policy_Network()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=self.learning_rate)

    def sample_action(self, state):
        mean, std = self.net(torch.tensor(state))
        distrib = Normal(mean[0] + self.eps, std[0] + self.eps)
        action = distrib.sample()
        self.probs.append(distrib.log_prob(action))
        return action.item()

    def update(self):
        running_g, gs = 0, []
        for R in self.rewards[::-1]:
            running_g = R + self.gamma * running_g
            gs.insert(0, running_g)
        deltas = torch.tensor(gs)
        log_probs = torch.stack(self.probs).squeeze()
        log_prob_mean = log_probs.mean()
        loss = -torch.sum(log_prob_mean * deltas)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.probs, self.rewards = [], []


env, agent, history = Reach(), REINFORCE(), []
for episode in range(500):
    obs, done, total = env.reset(), False, 0.0
    while not done:
        obs, reward, done = env.step(agent.sample_action(obs))
        agent.rewards.append(reward)
        total += reward
    history.append(total)
    agent.update()
    if episode % 100 == 99:
        print(f"Episode: {episode + 1} Average Reward: {np.mean(history[-100:]):.3f}")
