from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

np.random.seed(50)
torch.manual_seed(50)
N = 8


class Lights:
    """Each step shows one of four colours; pressing the matching button earns a point."""

    def reset(self):
        self.t = 0
        return self._show()

    def _show(self):
        self.colour = np.random.randint(4)
        return np.eye(4, dtype=np.float32)[self.colour]

    def step(self, action):
        reward = 1.0 if action == self.colour else np.random.choice([-1.0, 0.0])
        self.t += 1
        return self._show(), reward, self.t >= N * 4


class Policy(nn.Module):
    def __init__(self, s_size=4, a_size=4, h_size=16):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(s_size, h_size), nn.Linear(h_size, a_size)

    def forward(self, x):
        return F.softmax(self.fc2(F.relu(self.fc1(x))), dim=1)

    def act(self, state):
        probs = self.forward(torch.from_numpy(state).unsqueeze(0))
        m = Categorical(probs)
        action = m.sample()
        return action.item(), m.log_prob(action)


def reinforce(policy, optimizer, n_training_episodes, gamma, print_every):
    env, scores_deque = Lights(), deque(maxlen=50)
    for i_episode in range(1, n_training_episodes + 1):
        saved_log_probs, rewards = [], []
        state, done = env.reset(), False
        while not done:
            action, log_prob = policy.act(state)
            saved_log_probs.append(log_prob)
            state, reward, done = env.step(action)
            rewards.append(reward)
        scores_deque.append(sum(rewards))
        discounts = [gamma**i for i in range(len(rewards) + 1)]
        R = sum([a * b for a, b in zip(discounts, rewards)])
        policy_loss = []
        for log_prob in saved_log_probs:
            policy_loss.append(-log_prob * R)
        policy_loss = torch.cat(policy_loss).sum()
        optimizer.zero_grad()
        policy_loss.backward()
        optimizer.step()
        if i_episode % print_every == 0:
            print("Episode {}\tAverage Score: {:.2f}".format(i_episode, np.mean(scores_deque)))


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=5e-3)
reinforce(policy, optimizer, 300, 0.5, 50)
