"""Intent classifier of a support bot: training and the reply function."""
import io
import random

import torch
import torch.nn as nn

PHRASES = {
    "refund": "money back refund return charged twice payment",
    "delivery": "where parcel late shipping courier tracking",
    "account": "password login locked email profile sign",
    "cancel": "stop cancel subscription end renew contract",
    "technical": "crash error screen install bug freezes",
}
FILLER = "please hello i my the a can you help with it is have want to need today".split()


def utterances(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        intent = rng.choice(list(PHRASES))
        words = rng.sample(PHRASES[intent].split(), 2) + rng.choices(FILLER, k=rng.randint(3, 8))
        if rng.random() < 0.4:
            words += rng.sample(PHRASES[rng.choice(list(PHRASES))].split(), 1)
        rng.shuffle(words)
        rows.append((" ".join(words), intent))
    return rows


class Vocabulary:
    def __init__(self, texts):
        self.index = {w: i for i, w in enumerate(sorted({w for t in texts for w in t.split()}))}

    def encode(self, texts):
        x = torch.zeros(len(texts), len(self.index))
        for i, t in enumerate(texts):
            for w in t.split():
                if w in self.index:
                    x[i, self.index[w]] += 1
        return x / x.sum(1, keepdim=True).clamp(min=1).sqrt()


def network(vocab_size):
    return nn.Sequential(nn.Linear(vocab_size, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, len(PHRASES)))


def train(rows, val_rows, epochs=8, batch=25):
    intents = list(PHRASES)
    vocab = Vocabulary([t for t, _ in rows])
    x, y = vocab.encode([t for t, _ in rows]), torch.tensor([intents.index(i) for _, i in rows])
    xv, yv = vocab.encode([t for t, _ in val_rows]), torch.tensor([intents.index(i) for _, i in val_rows])
    model = network(len(vocab.index))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        for rows_ in torch.randperm(len(x)).split(batch):
            loss = nn.functional.cross_entropy(model(x[rows_]), y[rows_])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(xv).argmax(1) == yv).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {acc:.3f}")
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return buffer, vocab


class Bot:
    def __init__(self, weights, vocab):
        self.labels = sorted(PHRASES)
        self.vocab = vocab
        self.model = network(len(vocab.index))
        self.model.load_state_dict(torch.load(weights, weights_only=True))
        self.model.eval()

    def intents(self, texts):
        with torch.no_grad():
            best = self.model(self.vocab.encode(texts)).argmax(1)
        return [self.labels[i] for i in best.tolist()]


def main():
    random.seed(0)
    torch.manual_seed(0)
    weights, vocab = train(utterances(600, 1), utterances(200, 2))
    bot = Bot(weights, vocab)
    live = utterances(300, 3)
    answers = bot.intents([t for t, _ in live])
    right = sum(a == i for a, (_, i) in zip(answers, live))
    print(f"share of messages answered with the right intent {right / len(live):.3f}")


if __name__ == "__main__":
    main()
