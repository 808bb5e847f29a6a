"""PPO (https://arxiv.org/abs/1707.06347) on a vectorized cart-pole."""
import argparse
import csv
import math
from pathlib import Path

import torch
from torch import nn
from torch.distributions import Categorical
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import track


def parse_args():
    p = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--data", type=Path, required=True, help="folder with the start states, train.csv and val.csv")
    p.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    p.add_argument("--seed", type=int, default=2)
    p.add_argument("--evaluate", action="store_true", help="play the validation episodes with the saved agent")

    p.add_argument("--epochs", type=int, default=4, help="passes over the start states")
    p.add_argument("--num-envs", type=int, default=32, help="episodes per rollout")
    p.add_argument("--max-steps", type=int, default=100, help="time limit of an episode")
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--learning-rate", type=float, default=1e-2)
    p.add_argument("--final-lr-factor", type=float, default=0.1, help="the learning rate decays linearly to this share")
    p.add_argument("--gamma", type=float, default=0.97, help="discount")
    p.add_argument("--gae-lambda", type=float, default=0.95)
    p.add_argument("--update-epochs", type=int, default=3, help="passes over a rollout")
    p.add_argument("--minibatch-size", type=int, default=512)
    p.add_argument("--clip-coef", type=float, default=0.2)
    p.add_argument("--vf-coef", type=float, default=0.5)
    p.add_argument("--ent-coef", type=float, default=0.005)
    p.add_argument("--max-grad-norm", type=float, default=0.5)
    return p.parse_args()


class VecCartPole:
    """B carts in parallel. obs is (B, 4); a cart whose done is set has ended its episode and is not reset.

    The equations of motion are those of Barto, Sutton & Anderson (1983), integrated with Euler steps of tau seconds.
    """

    gravity = 9.8
    masscart = 1.0
    masspole = 0.1
    length = 0.5  # half of the pole
    force_mag = 8.0
    tau = 0.04
    x_threshold = 2.4
    theta_threshold = 12 * 2 * math.pi / 360

    def __init__(self, starts):
        self.state = starts
        self.done = torch.zeros(len(starts), dtype=torch.bool)
        self.scale = torch.tensor([self.x_threshold, 2.0, self.theta_threshold, 2.0])

    @property
    def obs(self):
        return self.state / self.scale

    def step(self, action):
        _, x_dot, theta, theta_dot = self.state.unbind(1)
        total_mass = self.masscart + self.masspole
        polemass_length = self.masspole * self.length
        sintheta, costheta = theta.sin(), theta.cos()
        force = self.force_mag * (2.0 * action - 1.0)  # 0 is left, 1 is right
        temp = (force + polemass_length * theta_dot**2 * sintheta) / total_mass
        thetaacc = self.gravity * sintheta - costheta * temp
        thetaacc = thetaacc / (self.length * (4 / 3 - self.masspole * costheta**2 / total_mass))
        xacc = temp - polemass_length * thetaacc * costheta / total_mass
        self.state = self.state + self.tau * torch.stack([x_dot, xacc, theta_dot, thetaacc], 1)

        x, _, theta, _ = self.state.unbind(1)
        self.done = self.done | (x.abs() > self.x_threshold) | (theta.abs() > self.theta_threshold)
        # -1 for a fall, and a small cost for being off the center or tilted
        cost = (x / self.x_threshold) ** 2 + (theta / self.theta_threshold) ** 2
        return torch.where(self.done, -1.0, -0.03 * cost)


def layer_init(layer, std=2**0.5):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


def mlp(hidden, out, out_std):
    return nn.Sequential(
        layer_init(nn.Linear(4, hidden)),
        nn.Tanh(),
        layer_init(nn.Linear(hidden, hidden)),
        nn.Tanh(),
        layer_init(nn.Linear(hidden, out), std=out_std),
    )


class Agent(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.actor = mlp(hidden, 2, out_std=0.01)
        self.critic = mlp(hidden, 1, out_std=1.0)

    def forward(self, obs):
        return self.actor(obs), self.critic(obs).squeeze(-1)


def load_starts(path):
    with path.open(newline="") as f:
        rows = csv.DictReader(f)
        starts = [[float(r[k]) for k in ("position", "velocity", "angle", "angular_velocity")] for r in rows]
    return TensorDataset(torch.tensor(starts))


@torch.no_grad()
def rollout(agent, starts, args):
    """Play one episode per start; returns a dataset of (obs, action, logprob, advantage, return)."""
    envs = VecCartPole(starts)
    obs, logits, actions, rewards, dones, valid = [], [], [], [], [], []
    while len(obs) < args.max_steps and not envs.done.all():
        valid.append(~envs.done)
        obs.append(envs.obs)
        logits.append(agent.actor(envs.obs))
        actions.append(Categorical(logits=logits[-1]).sample())
        rewards.append(envs.step(actions[-1]))
        dones.append(envs.done)

    # (T, B, ...)
    obs, logits, actions, valid = (torch.stack(x) for x in (obs, logits, actions, valid))
    logprobs = Categorical(logits=logits).log_prob(actions)
    values = agent.critic(obs).squeeze(-1)

    # GAE, https://arxiv.org/abs/1506.02438. The time limit is not a terminal state: bootstrap from the last value.
    nextvalue = agent.critic(envs.obs).squeeze(-1)
    lastgaelam = 0.0
    advantages = torch.zeros_like(values)
    for t in reversed(range(len(rewards))):
        nextnonterminal = 1.0 - dones[t].float()
        delta = rewards[t] + args.gamma * nextvalue * nextnonterminal - values[t]
        advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
        nextvalue = values[t]
    returns = advantages + values

    # (N, ...), without the steps after the end of an episode
    obs, actions, logprobs, advantages, returns = (
        x[valid] for x in (obs, actions, logprobs, advantages, returns)
    )
    # Normalized here and not per minibatch, since the last minibatch may hold a single step.
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return TensorDataset(obs, actions, logprobs, advantages, returns)


def ppo_loss(agent, batch, args):
    obs, actions, old_logprobs, advantages, returns = batch
    logits, values = agent(obs)
    dist = Categorical(logits=logits)
    ratio = (dist.log_prob(actions) - old_logprobs).exp()

    pg_loss1 = -advantages * ratio
    pg_loss2 = -advantages * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    v_loss = (values - returns).pow(2).mean()
    entropy = dist.entropy().mean()
    return pg_loss + args.vf_coef * v_loss - args.ent_coef * entropy


@torch.no_grad()
def evaluate(agent, loader, args):
    """Greedy policy: share of the episodes that reach the time limit, and mean length of an episode."""
    agent.eval()
    survived, lengths = [], []
    for (starts,) in loader:
        envs = VecCartPole(starts)
        length = torch.zeros(len(starts))
        for _ in range(args.max_steps):
            length += ~envs.done
            envs.step(agent.actor(envs.obs).argmax(-1))
        survived.append(~envs.done)
        lengths.append(length)
    return {
        "val_accuracy": torch.cat(survived).float().mean().item(),
        "val_steps": torch.cat(lengths).mean().item(),
    }


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    agent = Agent(args.hidden)
    val_loader = DataLoader(load_starts(args.data / "val.csv"), batch_size=256)
    ckpt_path = args.out / "ckpt.pt"
    if args.evaluate:
        agent.load_state_dict(torch.load(ckpt_path, weights_only=True)["model"])
        track.log(evaluate(agent, val_loader, args))
        return

    train_set = load_starts(args.data / "train.csv")
    train_loader = DataLoader(train_set, args.num_envs, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5, fused=True)
    num_rollouts = args.epochs * len(train_loader)
    args.out.mkdir(parents=True, exist_ok=True)

    rollouts = global_step = 0
    for epoch in range(1, args.epochs + 1):
        agent.train()
        for (starts,) in train_loader:
            frac = 1.0 - (1.0 - args.final_lr_factor) * rollouts / num_rollouts
            for group in optimizer.param_groups:
                group["lr"] = frac * args.learning_rate

            steps = rollout(agent, starts, args)
            minibatches = DataLoader(
                steps, batch_size=None, sampler=BatchSampler(RandomSampler(steps), args.minibatch_size, drop_last=False)
            )
            for _ in range(args.update_epochs):
                for batch in minibatches:
                    loss = ppo_loss(agent, batch, args)
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                    optimizer.step()
            rollouts += 1
            global_step += len(steps)

        metrics = evaluate(agent, val_loader, args)
        track.log(metrics, step=global_step)
        print(f"epoch={epoch} global_step={global_step} mean_length={metrics['val_steps']:.1f}")
        torch.save({"model": agent.state_dict(), "global_step": global_step}, ckpt_path)


if __name__ == "__main__":
    main()
