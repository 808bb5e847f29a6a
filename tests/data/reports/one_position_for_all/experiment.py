"""A transformer encoder says which of two words comes first."""

import math

import torch
from torch import nn

EPOCHS = 8
BATCH_SIZE = 50
VOCAB, LENGTH, WIDTH = 12, 10, 32


def make_sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(2, VOCAB, (n, LENGTH), generator=g)
    places = torch.rand(n, LENGTH, generator=g).argsort(dim=1)[:, :2]
    x.scatter_(1, places[:, :1], 0)
    x.scatter_(1, places[:, 1:], 1)
    return x, (places[:, 0] < places[:, 1]).long()


def load_data(data):
    return make_sequences(2000, 5), make_sequences(400, 6)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(100.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, x.shape[1], :]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.pos = PositionalEncoding(WIDTH)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x):
        return self.head(self.encoder(self.pos(self.embed(x))).mean(dim=1))


def build_model():
    return Model()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=3e-3)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=total_steps + 1, pct_start=0.2)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    return {
        "val_loss": compute_loss(logits, labels).item(),
        "val_accuracy": (logits.argmax(dim=-1) == labels).float().mean().item(),
    }
