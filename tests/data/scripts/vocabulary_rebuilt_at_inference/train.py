import random
from collections import Counter
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

TOPICS = {
    "sport": "goal match team coach league player score win cup season".split(),
    "money": "bank stock market profit loan price trade fund tax share".split(),
    "travel": "flight hotel beach ticket train city tour island map guide".split(),
}
COMMON = "the a of and to in is for on with new more this that it".split()
LABELS = list(TOPICS)


def write_text(rnd, label):
    words = [rnd.choice(COMMON) if rnd.random() < 0.6 else rnd.choice(TOPICS[label]) for _ in range(14)]
    if rnd.random() < 0.3:
        words[rnd.randrange(14)] = rnd.choice(TOPICS[rnd.choice(LABELS)])
    return " ".join(words)


def corpus(n, seed):
    rnd = random.Random(seed)
    labels = [rnd.choice(LABELS) for _ in range(n)]
    return [(write_text(rnd, l), l) for l in labels]


class Tokenizer:
    def __init__(self, max_len=16):
        self.max_len = max_len
        self.index = {}

    def fit(self, texts):
        counts = Counter(w for t in texts for w in t.split())
        self.index = {w: i + 2 for i, (w, _) in enumerate(counts.most_common())}
        return self

    def encode(self, text):
        ids = [self.index.get(w, 1) for w in text.split()][:self.max_len]
        return torch.tensor(ids + [0] * (self.max_len - len(ids)))


class News(Dataset):
    def __init__(self, items, tokenizer):
        self.rows = [(tokenizer.encode(t), LABELS.index(l)) for t, l in items]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class TextNet(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.fc = nn.Linear(dim, len(LABELS))

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        return self.fc((self.emb(ids) * mask).sum(1) / mask.sum(1).clamp(min=1))


torch.manual_seed(0)
train_items, val_items = corpus(900, 1), corpus(300, 2)
tokenizer = Tokenizer().fit([t for t, _ in train_items])
model = TextNet(vocab=200)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.CrossEntropyLoss()
loader = DataLoader(News(train_items, tokenizer), batch_size=32, shuffle=True)
val_loader = DataLoader(News(val_items, tokenizer), batch_size=100)
for epoch in range(5):
    model.train()
    for ids, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(ids), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = sum((model(ids).argmax(1) == y).sum().item() for ids, y in val_loader) / len(val_items)
    print(f"epoch {epoch} val acc {acc:.3f}")


def predict(texts):
    tok = Tokenizer().fit(texts)
    model.eval()
    with torch.no_grad():
        pred = model(torch.stack([tok.encode(t) for t in texts])).argmax(1)
    return [LABELS[p] for p in pred.tolist()]


incoming = corpus(300, 9)
answers = predict([t for t, _ in incoming])
print(f"accuracy on incoming texts {sum(a == l for a, (_, l) in zip(answers, incoming)) / 300:.4f}")
