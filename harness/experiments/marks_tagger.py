"""A bidirectional recurrent network tags each symbol of a text.

Texts have 4 to 24 symbols: letters, and one mark among the first three. There are four marks, and each stands for a
code. The tag of a letter depends on the letter and on the code of its text. So the network must carry the mark
forwards to the letters after it, and backwards to the letters before it.

1. `tags_of` derives the tag of each symbol; padding has none.
2. `Vocabulary` numbers the symbols of the training texts.
3. `Tagger` embeds the numbers, reads each text in both directions and classifies every symbol.
4. `evaluate` goes through the validation texts in batches and counts symbols.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from harness.run.schedules import warmup_cosine

EPOCHS = 4
BATCH_SIZE = 64

# The symbols of the data set: 0 is padding, 1 to 8 are letters, 9 to 12 are marks.
SYMBOLS = 13
FILLER = 0
FIRST_MARK = 9
MARKS = 4

# The tags: the four codes, and one for letters that no code changes.
PLAIN = 4
TAGS = 5
NO_TAG = -100  # after the end of a text; loss and accuracy ignore it

# The numbers that the network reads: padding, symbols that are too rare in training, and all other symbols.
PAD = 0
UNKNOWN = 1
FIRST_NUMBER = 2
LEAST_COUNT = 5  # symbols that are rarer in training are UNKNOWN

WIDTH = 24
HIDDEN = 32  # for each direction
DROPOUT = 0.1
INITIAL_DEVIATION = 0.3

PEAK_RATE = 0.01
WARMUP = 0.1  # share of the steps in which the rate rises
WEIGHT_DECAY = 0.01
MAX_NORM = 1.0
EVALUATION_BATCH = 128


# --- the texts ------------------------------------------------------------------------------------------------


def codes_of(symbols):
    """Return the code (N,) of each text (N, T), from 0 to MARKS - 1, which its mark determines."""
    marks = symbols.amax(dim=1)  # a mark is greater than any letter
    return (marks - FIRST_MARK).clamp(0, MARKS - 1)


def tags_of(symbols):
    """Return the tag (N, T) of each symbol of texts (N, T), and NO_TAG after the end of a text.

    Letters with an odd number and the mark are tagged with the code of their text, the other letters with PLAIN.
    """
    coded = (symbols % 2 == 1) | (symbols >= FIRST_MARK)
    tags = torch.where(coded, codes_of(symbols).unsqueeze(1), PLAIN)
    return torch.where(symbols == FILLER, NO_TAG, tags)


class Vocabulary:
    """Numbers symbols by their frequency in some texts, the most frequent one first."""

    def __init__(self, symbols):
        """Count the symbols of texts (N, T)."""
        counts = symbols.flatten().bincount(minlength=SYMBOLS)
        counts[FILLER] = 0
        by_frequency = counts.argsort(descending=True, stable=True)
        known = by_frequency[counts[by_frequency] >= LEAST_COUNT]
        self.numbers = torch.full((SYMBOLS,), UNKNOWN)
        self.numbers[known] = torch.arange(len(known)) + FIRST_NUMBER

    def encode(self, symbols):
        """Return the numbers (N, T) of the symbols of texts (N, T), and PAD after the end of a text."""
        return torch.where(symbols == FILLER, PAD, self.numbers[symbols])


def load_data(data):
    """Return both splits as (numbers (N, T), tags (N, T)), both int64, with the vocabulary of the training texts."""
    vocabulary = Vocabulary(data.train.symbols)
    training = vocabulary.encode(data.train.symbols), tags_of(data.train.symbols)
    validation = vocabulary.encode(data.validation.symbols), tags_of(data.validation.symbols)
    return training, validation


# --- the network ----------------------------------------------------------------------------------------------


class Encoder(nn.Module):
    """Reads each text in both directions, between its first and its last symbol, without the padding."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gru = nn.GRU(width, hidden, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        """Return the states of both directions (B, T, 2 * hidden) for x (B, T, width); 0 behind the end of a text.

        Packed sequences must come longest first.
        """
        lengths, order = lengths.sort(descending=True, stable=True)
        packed = pack_padded_sequence(x[order], lengths.cpu(), batch_first=True)
        states, _ = self.gru(packed)
        unpacked, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return unpacked[order.argsort()]


class Tagger(nn.Module):
    """Tag each symbol: numbers (B, T), padded with PAD, to logits (B, T, TAGS)."""

    def __init__(self, size):
        super().__init__()
        self.symbols = nn.Embedding(size, WIDTH)
        self.encoder = Encoder(WIDTH, HIDDEN)
        self.norm = nn.LayerNorm(2 * HIDDEN)
        self.inner = nn.Linear(2 * HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(DROPOUT)
        self.head = nn.Linear(HIDDEN, TAGS)

    def forward(self, texts):
        """Return the logits of the tag of each symbol."""
        lengths = (texts != PAD).sum(dim=1).clamp(min=1)
        embedded = self.dropout(self.symbols(texts))
        states = self.norm(self.encoder(embedded, lengths))
        return self.head(self.dropout(F.relu(self.inner(states))))


def initialize(model):
    """Draw the embedding from a normal distribution, and set the biases of the head to zero: no tag is preferred."""
    nn.init.normal_(model.symbols.weight, std=INITIAL_DEVIATION)
    nn.init.zeros_(model.head.bias)


def build_model():
    """Return the network: numbers (B, T), int64, to logits (B, T, TAGS)."""
    model = Tagger(FIRST_NUMBER + SYMBOLS - 1)
    initialize(model)
    return model


# --- training -------------------------------------------------------------------------------------------------


def build_optimizer(model):
    """Return AdamW with two groups: weight decay for matrices, none for biases, norms and the embedding."""
    rest = {id(parameter) for parameter in model.parameters() if parameter.dim() < 2} | {id(model.symbols.weight)}
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in rest], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in model.parameters() if id(p) in rest], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return the schedule, stepped once a batch: a linear warm-up, then a cosine to a twentieth."""
    warmup_steps = int(WARMUP * total_steps)
    return warmup_cosine(optimizer, warmup_steps=warmup_steps, total_steps=total_steps, final_fraction=0.05)


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it; `rng` is for random augmentation."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the mean cross-entropy of logits (B, T, TAGS) against tags (B, T), over all symbols with a tag."""
    return F.cross_entropy(outputs.flatten(0, 1), labels.flatten(), ignore_index=NO_TAG)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch, with the gradient clipped, and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=MAX_NORM)
    optimizer.step()
    return loss


# --- validation -----------------------------------------------------------------------------------------------


class Tally:
    """Sums over batches: the loss, and the right answers for all symbols and for symbols with a code."""

    def __init__(self):
        self.total = 0.0
        self.right = 0
        self.counted = 0
        self.right_coded = 0
        self.coded = 0

    def add(self, outputs, labels):
        """Count a batch of logits (B, T, TAGS) and tags (B, T)."""
        tagged = labels != NO_TAG
        coded = tagged & (labels != PLAIN)
        right = outputs.argmax(dim=-1) == labels
        size = int(tagged.sum())
        self.total += compute_loss(outputs, labels).item() * size
        self.right += int(right[tagged].sum())
        self.counted += size
        self.right_coded += int(right[coded].sum())
        self.coded += int(coded.sum())

    def figures(self):
        """Return mean loss and accuracy over all counted symbols, and the accuracy over symbols with a code."""
        return {
            "val_loss": self.total / self.counted,
            "val_accuracy": self.right / self.counted,
            "coded_accuracy": self.right_coded / self.coded,
        }


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy over all symbols of the validation split, and the accuracy of coded symbols."""
    model.eval()
    tally = Tally()
    batches = zip(inputs.split(EVALUATION_BATCH), labels.split(EVALUATION_BATCH), strict=True)
    for texts, tags in batches:
        tally.add(model(texts), tags)
    return tally.figures()
