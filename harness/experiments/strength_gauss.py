"""A network predicts the strength of concrete and the uncertainty of its prediction.

It outputs the mean and the logarithm of the variance of a normal distribution, as in Nix and Weigend (1994).
Initialization, dropout and Adam (arXiv:1412.6980) are written out.
"""

import math

import torch
from torch import nn

EPOCHS = 20
BATCH_SIZE = 64

COLUMNS = ("cement", "slag", "ash", "water", "plasticizer", "coarse", "fine", "age")

HIDDEN = 64
DROPOUT = 0.5
LR = 0.01


def load_data(data):
    """Return both splits as (columns (N, 8), strengths (N, 1)); every fifth sample is for validation.

    Columns and strength are standardized by the mean and deviation of the training samples.
    """
    columns = torch.stack([data.table[name] for name in COLUMNS], dim=1)
    strength = data.table["strength"].unsqueeze(1)
    validation = data.table["sample"] % 5 == 0
    train = ~validation
    columns = (columns - columns[train].mean(dim=0)) / columns[train].std(dim=0)
    strength = (strength - strength[train].mean()) / strength[train].std()
    return (columns[train], strength[train]), (columns[validation], strength[validation])


class Dropout(nn.Module):
    """Sets values to zero at random in training, and leaves the expectation of each value as it is."""

    def forward(self, x):
        """Return x (B, F), with zeros in training mode."""
        if not self.training:
            return x
        mask = torch.rand_like(x) >= DROPOUT
        return x * mask / (1 - DROPOUT)


def linear(inputs, outputs):
    """Return a linear layer with normal weights of variance 2 / inputs, for ReLU (arXiv:1502.01852)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=math.sqrt(2 / inputs))
    nn.init.zeros_(layer.bias)
    return layer


def build_model():
    """Return the network: columns (B, 8) to mean and log-variance (B, 2), which start near 0."""
    head = nn.Linear(HIDDEN, 2)
    nn.init.normal_(head.weight, std=0.01)
    nn.init.zeros_(head.bias)
    return nn.Sequential(
        linear(len(COLUMNS), HIDDEN),
        nn.ReLU(),
        linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        Dropout(),
        head,
    )


class Adam(torch.optim.Optimizer):
    """Adam with the names of algorithm 1 of the paper: m and v are moving averages, t counts the steps.

    eps is inside the root, so 1e-16 is what the paper's 1e-8 is outside.
    """

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-16):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["t"] = torch.tensor(0.0)
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                state["t"] += 1
                m = state["m"].mul_(beta1).add_((1 - beta1) * p.grad)
                v = state["v"].mul_(beta2).add_((1 - beta2) * p.grad**2)
                m_hat = m / (1 - beta1 ** state["t"])
                v_hat = v / (1 - beta2 ** state["t"])
                p.sub_(group["lr"] * m_hat * torch.rsqrt(v_hat + group["eps"]))


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return Adam(model.parameters(), lr=LR)


def compute_loss(outputs, targets):
    """Return the loss of outputs (B, 2) against targets (B, 1), a scalar."""
    mean, log_variance = outputs.split(1, dim=1)
    return (0.5 * (log_variance + (targets - mean) ** 2 / log_variance.exp())).mean()


def train_step(model, optimizer, inputs, targets):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, targets):
    """Return the loss on the whole validation split."""
    model.eval()
    return {"val_loss": compute_loss(model(inputs), targets).item()}
