"""Sentiment of short reviews with an EmbeddingBag."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

POSITIVE = "good great lovely superb fine charming fresh brilliant warm clever".split()
NEGATIVE = "bad awful dull poor boring weak stale messy cold clumsy".split()
NEUTRAL = "film plot actor scene music story camera the a this that was is very really it and".split()


def make_reviews(n, seed):
    rng = random.Random(seed)
    reviews = []
    for _ in range(n):
        label = rng.randint(0, 1)
        own, other = (POSITIVE, NEGATIVE) if label else (NEGATIVE, POSITIVE)
        words = rng.choices(NEUTRAL, k=rng.randint(6, 14))
        words += rng.choices(own, k=rng.randint(1, 3)) + rng.choices(other, k=rng.randint(0, 1))
        rng.shuffle(words)
        reviews.append((" ".join(words), label))
    return reviews


class Sentiment(nn.Module):
    def __init__(self, vocab_size, dim=16):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, dim, mode="mean")
        self.hidden = nn.Linear(dim, 32)
        self.fc = nn.Linear(32, 1)

    def forward(self, tokens, offsets):
        return self.fc(torch.relu(self.hidden(self.embedding(tokens, offsets)))).squeeze(1)


def main():
    random.seed(0)
    torch.manual_seed(0)
    train_reviews, val_reviews = make_reviews(1600, 1), make_reviews(400, 2)
    vocab = {w: i for i, w in enumerate(sorted({w for text, _ in train_reviews for w in text.split()}))}

    def collate(batch):
        tokens, offsets, labels = [], [], []
        for text, label in batch:
            offsets.append(len(tokens))
            tokens += [vocab[w] for w in text.split() if w in vocab]
            labels.append(float(label))
        return torch.tensor(tokens), torch.tensor(offsets), torch.tensor(labels)

    train_loader = DataLoader(train_reviews, batch_size=16, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(val_reviews, batch_size=100, collate_fn=collate)
    model = Sentiment(len(vocab))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(6):
        model.train()
        total_loss = 0.0
        for tokens, offsets, labels in train_loader:
            logits = model(tokens, offsets)
            loss = criterion(logits, labels)
            loss.backward()
            optimizer.step()
            total_loss += loss.item()

        model.eval()
        correct = 0
        with torch.no_grad():
            for tokens, offsets, labels in val_loader:
                correct += ((model(tokens, offsets) > 0) == (labels > 0.5)).sum().item()
        print(f"epoch {epoch}: train loss {total_loss / len(train_loader):.4f} val accuracy {correct / 400:.4f}")
    print(f"val accuracy: {correct / 400:.4f}")


if __name__ == "__main__":
    main()
