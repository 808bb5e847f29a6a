"""A recurrent network classifies texts. One of the first three symbols of a text is one of four marks: its class.

Texts have 4 to 24 symbols and are padded with 0.
"""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64

SYMBOLS = 13  # the padding, eight letters and four marks
CLASSES = 4
PAD = 0  # the rank of the padding, which is the most frequent symbol

WIDTH = 32
LR = 0.01
MAX_GRAD_NORM = 1.0


def load_data(data):
    """Return both splits as (symbols (N, T), classes (N,)), both int64; symbols are numbered by their frequency."""
    ranks = frequency_ranks(data.train.symbols)
    train = (ranks[data.train.symbols], data.train.labels)
    validation = (ranks[data.validation.symbols], data.validation.labels)
    return train, validation


def frequency_ranks(texts):
    """Return the rank (SYMBOLS,) of each symbol in texts (N, T): 0 for the most frequent one."""
    frequent_first = texts.flatten().bincount(minlength=SYMBOLS).argsort(descending=True, stable=True)
    return frequent_first.argsort()


class GRUClassifier(nn.Module):
    """Classify texts: symbols (B, T), padded with PAD, to logits (B, CLASSES)."""

    def __init__(self):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, WIDTH, padding_idx=PAD)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, texts):
        """Return the logits, from the state after the last symbol of each text."""
        states, _ = self.gru(self.symbols(texts))
        last = (texts != PAD).sum(dim=1) - 1
        return self.head(states[torch.arange(len(texts), device=texts.device), last])


def build_model():
    """Return the network: symbols (B, T), int64, to logits (B, CLASSES)."""
    return GRUClassifier()


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=LR, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the loss of logits (B, CLASSES) against classes (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=MAX_GRAD_NORM)
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
