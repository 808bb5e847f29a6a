"""Attention over the words of a text; one marked word among many decides the class."""

import torch
from torch import nn

EPOCHS = 10
BATCH_SIZE = 40
WORDS, CLASSES, LENGTH = 60, 5, 24


def make_texts(n, seed):
    g = torch.Generator().manual_seed(seed)
    texts = torch.randint(20, WORDS, (n, LENGTH), generator=g)
    y = torch.randint(CLASSES, (n,), generator=g)
    place = torch.randint(1, LENGTH, (n,), generator=g)
    rows = torch.arange(n)
    decoys = torch.randint(5, 5 + CLASSES, (n, 4), generator=g)
    texts[:, 0] = 0
    texts[rows.view(-1, 1), torch.randint(1, LENGTH, (n, 4), generator=g)] = decoys
    texts[rows, place] = 10 + y
    return texts, y


def load_data(data):
    return make_texts(1200, seed=2), make_texts(200, seed=3)


class Attention(nn.Module):
    def __init__(self, dimensions):
        super(Attention, self).__init__()
        self.query = nn.Linear(dimensions, 1)
        self.softmax = nn.Softmax(dim=0)

    def forward(self, context):
        scores = self.query(torch.tanh(context)).squeeze(2)
        weights = self.softmax(scores)
        return torch.bmm(weights.unsqueeze(1), context).squeeze(1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24)
        self.attention = Attention(24)
        self.out = nn.Linear(24, CLASSES)

    def forward(self, text):
        return self.out(self.attention(self.embed(text)))


def build_model():
    return Reader()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    model.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        outputs = torch.cat([model(text.unsqueeze(0)) for text in inputs])
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(1) == labels).float().mean().item(),
    }
