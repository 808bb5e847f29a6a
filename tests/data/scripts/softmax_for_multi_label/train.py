"""Tag prediction for short posts: every post may carry several tags."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

N_TAGS, WORDS_PER_TAG, COMMON = 8, 12, 60
VOCAB = 1 + N_TAGS * WORDS_PER_TAG + COMMON


class Posts(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            tags = rng.sample(range(N_TAGS), rng.choice([0, 1, 1, 2, 2, 3, 4]))
            words = [1 + N_TAGS * WORDS_PER_TAG + rng.randrange(COMMON) for _ in range(rng.randint(5, 10))]
            for t in tags:
                words += [1 + t * WORDS_PER_TAG + rng.randrange(WORDS_PER_TAG) for _ in range(rng.randint(1, 3))]
            rng.shuffle(words)
            target = torch.zeros(N_TAGS)
            target[tags] = 1.0
            self.rows.append((words, target))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate_fn(batch):
    words = [torch.tensor(w) for w, _ in batch]
    padded = nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=0)
    return padded, torch.stack([t for _, t in batch])


class Tagger(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.hidden = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, N_TAGS)

    def forward(self, words):
        e = torch.relu(self.hidden(self.emb(words)))
        e = e.masked_fill((words == 0).unsqueeze(-1), 0.0).sum(1)
        return torch.softmax(self.out(e), dim=1)


def micro_f1(model, loader):
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for words, tags in loader:
            pred = model(words) > 0.5
            true = tags > 0.5
            tp += (pred & true).sum().item()
            fp += (pred & ~true).sum().item()
            fn += (~pred & true).sum().item()
    return 2 * tp / max(1, 2 * tp + fp + fn)


def main():
    random.seed(0)
    torch.manual_seed(0)
    train_loader = DataLoader(Posts(1500, 1), batch_size=32, shuffle=True, collate_fn=collate_fn)
    val_loader = DataLoader(Posts(300, 2), batch_size=100, collate_fn=collate_fn)
    model = Tagger()
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        total = 0.0
        for words, tags in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(words), tags)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.3f} F1 {micro_f1(model, val_loader):.3f}")
    print(f"validation micro F1 {micro_f1(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
