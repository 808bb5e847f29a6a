"""A small causal transformer continues texts of a made-up language of eight letters.

The language has a known entropy: after two letters, one letter has a probability of 0.8 and another one of 0.2. From
the third letter of a text on, no honest model gets below 0.500 nats a letter. The second letter costs ln 8. So over the
16 predicted letters, the lowest loss is (ln 8 + 15 * 0.500) / 16 = 0.599, and the best accuracy is 0.76.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from harness.run.schedules import warmup_cosine

EPOCHS = 4
BATCH_SIZE = 32

LETTERS = 8
LENGTH = 16  # letters that the network sees at most

WIDTH = 32
HEADS = 2
BLOCKS = 1
EXPANSION = 4  # how much wider the feed-forward network is than the stream

PEAK_LR = 0.03
WARMUP = 0.1  # share of the steps in which the rate rises
WEIGHT_DECAY = 0.01
MAX_GRAD_NORM = 1.0

INIT_STD = 0.1


# ------------------------------------------------------------------------------------------------ the data


def load_data(data):
    """Return both splits as (letters (N, 16), the letter that follows each of them (N, 16)), both int64."""
    train, validation = data.train.symbols, data.validation.symbols
    return next_letters(train), next_letters(validation)


def next_letters(texts):
    """Return inputs and targets of texts (N, LENGTH + 1): two tensors (N, LENGTH), shifted by one letter."""
    return texts[:, :-1], texts[:, 1:]


# --------------------------------------------------------------------------------------------- the network


class CausalSelfAttention(nn.Module):
    """Each position attends to itself and to the positions before it, in every head."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.size = width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        """Return (B, T, width) as (B, heads, T, size)."""
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, self.size).transpose(1, 2)

    def forward(self, x):
        """Return the attention output of each position, (B, T, width) to (B, T, width)."""
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.size)
        scores = scores.masked_fill(causal_mask(x), float("-inf"))
        weights = scores.softmax(dim=-1)
        gathered = (weights @ value).transpose(1, 2)
        return self.out(gathered.reshape(x.shape))


def causal_mask(x):
    """Return which positions (columns) come after a position (row) of a stream (B, T, width), bool (T, T)."""
    length = x.shape[1]
    return torch.ones(length, length, dtype=torch.bool, device=x.device).triu(diagonal=1)


class FeedForward(nn.Module):
    """Two linear layers, applied to each position separately."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, EXPANSION * width)
        self.out = nn.Linear(EXPANSION * width, width)

    def forward(self, x):
        """Return (B, T, width) for (B, T, width)."""
        return self.out(F.gelu(self.inner(x)))


class Block(nn.Module):
    """Attention, then the feed-forward network; each reads the normalized stream and adds to it."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads)
        self.forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x):
        """Return the stream with what this block adds, (B, T, width) to (B, T, width)."""
        x = x + self.attention(self.attention_norm(x))
        x = x + self.feed_forward(self.forward_norm(x))
        return x


class Transformer(nn.Module):
    """Predict the next letter at each position: letters (B, T) to logits (B, T, LETTERS).

    The embedding of the letters is also the weight of the last layer (Press and Wolf, arXiv:1608.05859).
    """

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(WIDTH, HEADS) for _ in range(BLOCKS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, text):
        """Return the logits of the next letter at each position."""
        places = torch.arange(text.shape[1], device=text.device)
        x = self.letters(text) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.letters.weight)


def initialize(model):
    """Draw embeddings and matrices from a normal distribution, and set the biases to zero.

    The last layers of a block get smaller weights, so that the variance of the stream does not grow with the depth
    (Radford et al., Language Models are Unsupervised Multitask Learners, 2019, section 2.3).
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=INIT_STD)
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=INIT_STD)
            nn.init.zeros_(module.bias)
    for block in model.blocks:
        for layer in (block.attention.out, block.feed_forward.out):
            nn.init.normal_(layer.weight, std=INIT_STD / math.sqrt(2 * BLOCKS))


def build_model():
    """Return the network: letters (B, T), int64, to logits (B, T, LETTERS)."""
    model = Transformer()
    initialize(model)
    return model


# -------------------------------------------------------------------------------------------- the training


def build_optimizer(model):
    """Return AdamW with two groups: weight decay for matrices, none for biases, norms and both embeddings."""
    matrices = [p for name, p in model.named_parameters() if name.startswith("blocks") and p.dim() > 1]
    others = [p for name, p in model.named_parameters() if not name.startswith("blocks") or p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=PEAK_LR, betas=(0.9, 0.98), fused=True)


def build_scheduler(optimizer, total_steps):
    """Return the schedule, stepped once a batch: a linear warm-up, then a cosine to zero."""
    warmup_steps = int(WARMUP * total_steps)
    return warmup_cosine(optimizer, warmup_steps=warmup_steps, total_steps=total_steps)


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the mean cross-entropy of logits (B, T, LETTERS) against the next letters (B, T), in nats a letter."""
    return F.cross_entropy(outputs.flatten(0, 1), labels.flatten())


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=MAX_GRAD_NORM)
    optimizer.step()
    return loss


# ------------------------------------------------------------------------------------------ the evaluation


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the share of correctly predicted letters on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=-1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}


@torch.no_grad()
def continue_text(model, text, letters):
    """Return texts (B, T) continued by `letters` letters, each the likeliest after the letters before it.

    A run does not call it. Use it to look at the output of the network.
    """
    model.eval()
    for _ in range(letters):
        following = model(text[:, -LENGTH:])[:, -1].argmax(dim=-1, keepdim=True)
        text = torch.cat([text, following], dim=1)
    return text
