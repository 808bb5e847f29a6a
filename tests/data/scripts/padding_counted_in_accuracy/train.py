"""Part-of-speech style tagging with a bidirectional LSTM."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

TAGS = ["<pad>", "NOUN", "VERB", "ADJ", "DET", "ADV"]
WORDS = 120


def corpus(n, seed):
    rng = random.Random(seed)
    lexicon = random.Random(0)
    possible = {w: lexicon.sample(range(1, 6), 2) for w in range(1, WORDS)}
    sentences = []
    for _ in range(n):
        words, tags, prev = [], [], 4
        for _ in range(rng.choice([3, 4, 5, 6, 8, 30])):
            w = rng.randrange(1, WORDS)
            a, b = possible[w]
            tag = a if (prev + a) % 2 == 0 else b
            if rng.random() < 0.2:
                tag = rng.choice([a, b])
            words.append(w)
            tags.append(tag)
            prev = tag
        sentences.append((torch.tensor(words), torch.tensor(tags)))
    return sentences


def make_batches(sentences, size, rng=None):
    order = list(range(len(sentences)))
    if rng is not None:
        rng.shuffle(order)
    for i in range(0, len(order), size):
        chunk = [sentences[j] for j in order[i : i + size]]
        words = pad_sequence([w for w, _ in chunk], batch_first=True)
        tags = pad_sequence([t for _, t in chunk], batch_first=True)
        lengths = torch.tensor([len(w) for w, _ in chunk])
        yield words, tags, lengths


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(WORDS, dim, padding_idx=0)
        self.drop = nn.Dropout(0.2)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.drop(self.emb(words)), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.shape[1])
        return self.out(self.drop(h))


def token_accuracy(model, sentences):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for words, tags, lengths in make_batches(sentences, 60):
            pred = model(words, lengths).argmax(-1)
            pred = pred.masked_fill(words == 0, 0)
            correct += (pred == tags).sum().item()
            total += tags.numel()
    return correct / total


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    train, val = corpus(900, 1), corpus(240, 2)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    for epoch in range(5):
        model.train()
        for words, tags, lengths in make_batches(train, 30, rng):
            logits = model(words, lengths)
            loss = criterion(logits.flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {token_accuracy(model, val):.3f}")
    print(f"validation tagging accuracy {token_accuracy(model, val):.3f}")


if __name__ == "__main__":
    main()
