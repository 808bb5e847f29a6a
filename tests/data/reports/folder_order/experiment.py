"""A convolutional network finds the promoter motif in DNA, one token a base."""

import torch
import torch.nn as nn

EPOCHS = 5
BATCH_SIZE = 50
BASES = 4
MOTIF = torch.tensor([3, 0, 3, 0, 0, 0, 2])  # T A T A A A G
ON_DISK = {"train": ["negative", "positive"], "test": ["positive", "negative"]}


def listdir(split):
    """Return the subfolders of a split as the file system lists them."""
    return ON_DISK[split]


def read_folder(split, name, count, seed):
    """Return the sequences (count, 60) in one folder."""
    g = torch.Generator().manual_seed(seed)
    sequences = torch.randint(BASES, (count, 60), generator=g)
    if name == "positive":
        for row in sequences:
            start = int(torch.randint(50, (1,), generator=g))
            row[start : start + len(MOTIF)] = MOTIF
    return sequences


def read_split(split, count):
    sequences, labels = [], []
    for label, name in enumerate(listdir(split)):
        found = read_folder(split, name, count, seed=len(split) * 10 + len(name) + (name == "positive"))
        sequences.append(found)
        labels.append(torch.full((count,), label))
    return torch.cat(sequences), torch.cat(labels)


def load_data(data):
    return read_split("train", 800), read_split("test", 200)


class DNAClassifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embedding = nn.Embedding(BASES, 8)
        self.conv = nn.Conv1d(8, width, kernel_size=8)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        hidden = self.embedding(tokens).transpose(1, 2)
        hidden = torch.relu(self.conv(hidden)).amax(dim=2)
        return self.head(hidden)


criterion = nn.CrossEntropyLoss()


def build_model():
    return DNAClassifier()


def build_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return criterion(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        scores = model(inputs)
    return {
        "val_loss": criterion(scores, labels).item(),
        "val_accuracy": (scores.argmax(-1) == labels).double().mean().item(),
    }
