"""A recurrent cell reads a text symbol by symbol and predicts its class, which one of the first three symbols tells.

Texts have 4 to 24 symbols and are padded with 0. After the end of a text the state does not change.
"""

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64

SYMBOLS = 13  # the padding, eight letters and four marks
CLASSES = 4
PAD = 0

WIDTH = 32
LR = 0.01
MAX_GRAD_NORM = 1.0


def load_data(data):
    """Return both splits as (symbols (N, T), classes (N,)), both int64."""
    return (data.train.symbols, data.train.labels), (data.validation.symbols, data.validation.labels)


class GRUCellClassifier(nn.Module):
    """Classify texts: symbols (B, T), padded with PAD, to logits (B, CLASSES)."""

    def __init__(self):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, WIDTH, padding_idx=PAD)
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, texts):
        """Return the logits, from the state after the last symbol of each text."""
        embedded = self.symbols(texts)
        state = torch.zeros_like(embedded[:, 0])
        for place in range(texts.shape[1]):
            following = self.cell(embedded[:, place], state)
            going_on = (texts[:, place] != PAD).unsqueeze(1)
            state = torch.where(going_on, following, state)
        return self.head(state)


def build_model():
    """Return the network: symbols (B, T), int64, to logits (B, CLASSES)."""
    return GRUCellClassifier()


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
