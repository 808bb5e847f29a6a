"""Learn to balance a pole on a cart with PPO (Schulman et al., 2017).

    python pole_policy.py --data data --out out --seed 2
    python pole_policy.py --data data --out out --resume
    python pole_policy.py --data data --out out --evaluate

train.csv and val.csv have start states of episodes. A push to the left or to the right moves the cart. An episode ends
if the pole falls or the cart leaves its track. val_accuracy is the share of the validation starts from which the pole
stays up until the time limit, with the likeliest action in each step; val_steps is the mean length of an episode.
"""

import argparse
import csv
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import track

COLUMNS = ("position", "velocity", "angle", "angular_velocity")
MAX_STEPS = 100

EPOCHS = 4
EPISODES = 32  # played between two rounds of updates
GAMMA = 0.97
GAE_LAMBDA = 0.95
PPO_EPOCHS = 4
MINIBATCH_SIZE = 512
CLIP_RANGE = 0.2
VALUE_COEF = 0.5
ENTROPY_COEF = 0.005
HIDDEN = 32
LR = 1e-2
MAX_GRAD_NORM = 0.5


# --- environment ----------------------------------------------------------------------------------------------------


class CartPole:
    """Carts with poles, as in Barto, Sutton and Anderson (1983), each in an episode of its own.

    states: (B, 4), the columns of COLUMNS in m, m/s, rad and rad/s. fallen: (B,), whether the episode has ended.
    """

    GRAVITY = 9.8
    CART_MASS, POLE_MASS = 1.0, 0.1
    HALF_LENGTH = 0.5
    FORCE = 8.0
    SECONDS = 0.04  # for each step
    MAX_POSITION, MAX_ANGLE = 2.4, 12 * math.pi / 180

    def __init__(self, states):
        self.states = states
        self.fallen = torch.zeros(len(states), dtype=torch.bool)

    def observe(self):
        """Return the states (B, 4), each column scaled to about [-1, 1]."""
        return self.states / torch.tensor([self.MAX_POSITION, 2.0, self.MAX_ANGLE, 2.0])

    def step(self, actions):
        """Push each cart to the left (0) or to the right (1). Return the rewards (B,).

        The reward is -1 for a fall, and else slightly negative far from the middle and from upright.
        """
        _, v, angle, w = self.states.unbind(dim=1)
        force = self.FORCE * (2.0 * actions - 1.0)
        sin, cos = angle.sin(), angle.cos()
        mass = self.CART_MASS + self.POLE_MASS
        push = (force + self.POLE_MASS * self.HALF_LENGTH * w**2 * sin) / mass
        turn = self.GRAVITY * sin - cos * push
        turn = turn / (self.HALF_LENGTH * (4 / 3 - self.POLE_MASS * cos**2 / mass))
        acceleration = push - self.POLE_MASS * self.HALF_LENGTH * turn * cos / mass
        rates = torch.stack([v, acceleration, w, turn], dim=1)
        self.states = self.states + self.SECONDS * rates
        is_outside = (self.states[:, 0].abs() > self.MAX_POSITION) | (self.states[:, 2].abs() > self.MAX_ANGLE)
        self.fallen = self.fallen | is_outside
        position, _, angle, _ = self.observe().unbind(dim=1)
        return torch.where(self.fallen, -1.0, -0.03 * (position**2 + angle**2))


def read_starts(path):
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return TensorDataset(torch.tensor([[float(row[column]) for column in COLUMNS] for row in rows]))


# --- model ----------------------------------------------------------------------------------------------------------


def linear(inputs, outputs, gain):
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class ActorCritic(nn.Module):
    def __init__(self, hidden, actions=2):
        super().__init__()
        self.actor = nn.Sequential(
            linear(len(COLUMNS), hidden, math.sqrt(2)),
            nn.Tanh(),
            linear(hidden, hidden, math.sqrt(2)),
            nn.Tanh(),
            linear(hidden, actions, 0.01),
        )
        self.critic = nn.Sequential(
            linear(len(COLUMNS), hidden, math.sqrt(2)),
            nn.Tanh(),
            linear(hidden, hidden, math.sqrt(2)),
            nn.Tanh(),
            linear(hidden, 1, 1.0),
        )

    def forward(self, observations):
        """Return the logits of the actions (B, actions) and the values (B,) of observations (B, 4)."""
        return self.actor(observations), self.critic(observations).squeeze(1)


# --- training -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def collect(model, starts):
    """Play an episode from each start. Return the transitions of all episodes, as a data set.

    A transition has an observation, the action and its log-probability, the advantage, and the return.
    """
    env = CartPole(starts)
    observations, actions, logits, values, rewards, fallen, is_valid = [], [], [], [], [], [], []
    while len(rewards) < MAX_STEPS and not env.fallen.all():
        is_valid.append(~env.fallen)
        observations.append(env.observe())
        step_logits, step_values = model(observations[-1])
        logits.append(step_logits)
        values.append(step_values)
        actions.append(Categorical(logits=step_logits).sample())
        rewards.append(env.step(actions[-1]))
        fallen.append(env.fallen)
    _, last_values = model(env.observe())

    advantages = advantages_of(rewards, values, last_values, fallen)
    actions, is_valid = torch.stack(actions), torch.stack(is_valid)
    log_probs = Categorical(logits=torch.stack(logits)).log_prob(actions)
    returns = advantages + torch.stack(values)
    parts = torch.stack(observations), actions, log_probs, advantages, returns
    return TensorDataset(*(part[is_valid] for part in parts))


def advantages_of(rewards, values, last_values, fallen):
    """Return the generalized advantage estimates (T, B) for lists with T entries (B,).

    The time limit is not part of the task, so an episode that reaches it goes on with the value of its last state.
    """
    advantages, advantage, next_values = [], torch.zeros_like(last_values), last_values
    for t in reversed(range(len(rewards))):
        goes_on = (~fallen[t]).float()
        delta = rewards[t] + GAMMA * goes_on * next_values - values[t]
        advantage = delta + GAMMA * GAE_LAMBDA * goes_on * advantage
        advantages.append(advantage)
        next_values = values[t]
    return torch.stack(advantages[::-1])


def ppo_loss(model, observations, actions, old_log_probs, advantages, returns):
    logits, values = model(observations)
    policy = Categorical(logits=logits)
    ratio = (policy.log_prob(actions) - old_log_probs).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped = ratio.clamp(1 - CLIP_RANGE, 1 + CLIP_RANGE)
    policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
    value_loss = F.mse_loss(values, returns)
    return policy_loss + VALUE_COEF * value_loss - ENTROPY_COEF * policy.entropy().mean()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    up = steps = count = 0
    for (starts,) in loader:
        env = CartPole(starts)
        for _ in range(MAX_STEPS):
            steps += (~env.fallen).sum().item()
            logits, _ = model(env.observe())
            env.step(logits.argmax(dim=1))
        up += (~env.fallen).sum().item()
        count += len(starts)
    return {"val_accuracy": up / count, "val_steps": steps / count}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = ActorCritic(HIDDEN)
    val_loader = DataLoader(read_starts(args.data / "val.csv"), batch_size=256)
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
    if args.evaluate:
        track.log(evaluate(model, val_loader))
        return

    order = torch.Generator().manual_seed(args.seed)
    start_loader = DataLoader(
        read_starts(args.data / "train.csv"), EPISODES, shuffle=True, drop_last=True, generator=order
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, eps=1e-5, fused=True)
    rounds = EPOCHS * len(start_loader)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=rounds)
    first_epoch = 0
    if args.resume:
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        first_epoch = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(first_epoch, EPOCHS):
        model.train()
        for (starts,) in start_loader:
            transitions = collect(model, starts)
            minibatches = BatchSampler(RandomSampler(transitions), MINIBATCH_SIZE, drop_last=False)
            loader = DataLoader(transitions, batch_size=None, sampler=minibatches)
            for _ in range(PPO_EPOCHS):
                for batch in loader:
                    loss = ppo_loss(model, *batch)
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
                    optimizer.step()
            scheduler.step()

        track.log(evaluate(model, val_loader), step=epoch + 1)
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
        }
        torch.save(state, args.out / "ckpt.pt")


if __name__ == "__main__":
    main()
