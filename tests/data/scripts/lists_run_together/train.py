import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

np.random.seed(14)
torch.manual_seed(14)


class Observer:
    """Runs one episode of its own world: sort the parcels on the belt until the first mistake that jams it."""

    def __init__(self, ease):
        self.ease = ease

    def run_episode(self, agent, ob_id):
        for _ in range(20):
            kind = np.random.randint(3)
            state = torch.zeros(5)
            state[kind], state[3 + ob_id % 2] = 1.0, 1.0
            action = agent.select_action(ob_id, state)
            right = action == kind
            agent.rewards[ob_id].append(1.0 if right else 0.0)
            if not right and np.random.rand() > self.ease:
                break


class Agent:
    def __init__(self, n):
        self.observers = [Observer(ease) for ease in np.linspace(0.0, 1.0, n)]
        self.policy = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=5e-3)
        self.gamma = 0.95

    def select_action(self, ob_id, state):
        m = Categorical(F.softmax(self.policy(state), dim=0))
        action = m.sample()
        self.saved_log_probs[ob_id].append(m.log_prob(action))
        return action.item()

    def run_episode(self):
        self.rewards = {i: [] for i in range(len(self.observers))}
        self.saved_log_probs = {i: [] for i in range(len(self.observers))}
        for i, observer in enumerate(self.observers):
            observer.run_episode(self, i)

    def finish_episode(self):
        R, probs, rewards = 0, [], []
        for ob_id in self.rewards:
            probs.extend(self.saved_log_probs[ob_id])
            rewards.extend(self.rewards[ob_id])
        returns = []
        for r in rewards[::-1]:
            R = r + self.gamma * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        policy_loss = torch.stack([-log_prob * R for log_prob, R in zip(probs, returns)]).sum()
        self.optimizer.zero_grad()
        policy_loss.backward()
        self.optimizer.step()
        return sum(rewards) / len(rewards)


agent, scores = Agent(6), []
for i_episode in range(70):
    agent.run_episode()
    scores.append(agent.finish_episode())
    if i_episode % 10 == 9:
        print(f"Episode {i_episode + 1}\tshare of parcels sorted rightly {np.mean(scores[-10:]):.4f}")
