"""A perceptron on a table of two columns: which of two spirals is a point on?"""

import math

import torch
from torch import nn

EPOCHS = 30
BATCH_SIZE = 64


def spirals(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=g)
    t = torch.rand(n, generator=g).sqrt() * 1.5 * math.pi + 0.5
    angle = t + math.pi * y
    x = torch.stack([t * angle.cos(), t * angle.sin()], dim=1) / 3
    return x + 0.05 * torch.randn(n, 2, generator=g), y


def load_data(data):
    return spirals(1200, 1), spirals(300, 2)


class MLP(nn.Module):
    def __init__(self, input_dim, hidden_dim_list, num_classes, dropout=0.0):
        super(MLP, self).__init__()
        seq = []
        for hidden_dim in hidden_dim_list:
            seq.append(nn.Linear(input_dim, hidden_dim))
            seq.append(nn.Dropout(dropout))
            input_dim = hidden_dim
        seq.append(nn.Linear(input_dim, num_classes))
        self.seq = nn.Sequential(*seq)

    def forward(self, x):
        return self.seq(x)


def build_model():
    return MLP(2, [48, 48], 2)


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=5e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    logit = model(inputs)
    loss = compute_loss(logit, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        logit = model(inputs)
        acc = torch.mean((torch.argmax(logit, dim=1) == labels).float()).item()
        return {"val_loss": compute_loss(logit, labels).item(), "val_accuracy": acc}
