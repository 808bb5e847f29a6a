"""A recurrent policy imitates an expert: one action for each step of an episode."""

import torch
from torch import nn

EPOCHS = 6
BATCH_SIZE = 32
STEPS, ACTIONS, STATES = 12, 5, 15


def episodes(n, seed):
    g = torch.Generator().manual_seed(seed)
    states = torch.randint(STATES, (n, STEPS), generator=g)
    actions = torch.cumsum(states, dim=1) % 2 * 2 + (states > 7)
    return states, actions


def load_data(data):
    return episodes(960, 1), episodes(200, 2)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(STATES, 16)
        self.core = nn.LSTM(16, 48, batch_first=True)
        self.policy = nn.Linear(48, ACTIONS)

    def forward(self, states):
        hidden, _ = self.core(self.embed(states))
        return self.policy(torch.cat([hidden], dim=-1))


def build_model():
    return Policy()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-2)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    bs, seq_len, n_actions = outputs.shape
    logits = outputs.reshape(bs, n_actions, seq_len)
    return nn.functional.cross_entropy(logits, labels)


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 40.0)
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=2) == labels).float().mean().item()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy}
