"""Sorts short texts into four topics by the mean of their word embeddings."""

import torch
from torch import nn

EPOCHS = 6
BATCH_SIZE = 32
TOPICS = 4
LENGTH = 20


def write_texts(count, seed):
    """Return texts as lists of words, and their topics; a topic has 30 words of its own, 40 are common."""
    g = torch.Generator().manual_seed(seed)
    topics = torch.randint(TOPICS, (count,), generator=g)
    texts = []
    for topic in topics.tolist():
        own = torch.rand(LENGTH, generator=g) < 0.3
        common = torch.randint(40, (LENGTH,), generator=g)
        special = 40 + 30 * topic + torch.randint(30, (LENGTH,), generator=g)
        texts.append([f"word{number}" for number in torch.where(own, special, common).tolist()])
    return texts, topics


class TextDataset:
    def __init__(self, texts, vocab_to_int=None):
        self.vocab_to_int = vocab_to_int or {}
        if not self.vocab_to_int:
            for text in texts:
                for word in text:
                    self.vocab_to_int.setdefault(word, len(self.vocab_to_int) + 1)
        self.tokens = torch.tensor([[self.vocab_to_int.get(word, 0) for word in text] for text in texts])


def load_data(data):
    train_texts, train_topics = write_texts(1200, seed=1)
    test_texts, test_topics = write_texts(300, seed=2)
    train_dataset = TextDataset(train_texts)
    test_dataset = TextDataset(test_texts)
    return (train_dataset.tokens, train_topics), (test_dataset.tokens, test_topics)


class Classifier(nn.Module):
    def __init__(self, vocab_size=200, embed_dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed_dim, padding_idx=0)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(embed_dim, TOPICS)

    def forward(self, tokens):
        return self.fc(self.dropout(self.embed(tokens).mean(dim=1)))


def build_model():
    return Classifier()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    return {
        "val_loss": compute_loss(logits, labels).item(),
        "val_accuracy": torch.eq(logits.argmax(1), labels).float().mean().item(),
    }
