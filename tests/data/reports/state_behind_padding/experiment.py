"""A recurrent network on sequences of different lengths: does the last event repeat the first?"""

import torch
from torch import nn

EPOCHS = 8
BATCH_SIZE = 50
EVENTS, LONGEST = 6, 24


def make_sequences(n, seed):
    """Return events 1 to 6, padded with 0 to the longest sequence, and the kind of the last event."""
    g = torch.Generator().manual_seed(seed)
    obs = torch.randint(1, EVENTS + 1, (n, LONGEST), generator=g)
    seq_lens = torch.randint(2, LONGEST, (n,), generator=g)
    last = obs[torch.arange(n), seq_lens - 1]
    obs[torch.arange(LONGEST) >= seq_lens.unsqueeze(1)] = 0
    return obs, last - 1


def load_data(data):
    return make_sequences(1200, 1), make_sequences(300, 2)


class RecurrentNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.embedding = nn.Embedding(EVENTS + 1, 8, padding_idx=0)
        self.rnn = nn.RNN(8, hidden, batch_first=True)
        self.logits = nn.Linear(hidden, EVENTS)

    def forward(self, obs):
        seq_lens = (obs != 0).sum(dim=1).clamp(min=1)
        features, state = self.rnn(self.embedding(obs))
        last = features[:, -1]
        return self.logits(last)


def build_model():
    return RecurrentNet()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=5e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    accuracy = (logits.argmax(1) == labels).float().mean()
    return {"val_loss": compute_loss(logits, labels).item(), "val_accuracy": accuracy.item()}
