"""Toy translation: word sequence to word sequence with an encoder-decoder."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2
SRC_VOCAB, TGT_VOCAB, MAX_LEN = 40, 43, 24


class Pairs(Dataset):
    """Target: source in reverse order, each word by its dictionary entry."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        words = list(range(3, TGT_VOCAB))
        random.Random(1).shuffle(words)
        self.rows = []
        for _ in range(n):
            length = rng.choice([2, 3, 3, 4, 4, 5, 6])
            src = [rng.randrange(3, SRC_VOCAB) for _ in range(length)]
            tgt = [words[w - 3] for w in reversed(src)]
            self.rows.append((src, tgt))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    src = torch.full((len(rows), MAX_LEN), PAD)
    tgt = torch.full((len(rows), MAX_LEN), PAD)
    for i, (s, t) in enumerate(rows):
        src[i, : len(s)] = torch.tensor(s)
        t = [BOS] + t + [EOS]
        tgt[i, : len(t)] = torch.tensor(t)
    return src, (src != PAD).sum(1), tgt


class Seq2Seq(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.src_emb = nn.Embedding(SRC_VOCAB, dim, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(TGT_VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(2 * dim, TGT_VOCAB)

    def forward(self, src, lengths, tgt_in):
        packed = nn.utils.rnn.pack_padded_sequence(self.src_emb(src), lengths, batch_first=True, enforce_sorted=False)
        memory, state = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True, total_length=src.shape[1])
        h, _ = self.decoder(self.tgt_emb(tgt_in), state)
        score = h @ memory.transpose(1, 2)
        score = score.masked_fill((src == PAD)[:, None], -1e9)
        return self.out(torch.cat([h, score.softmax(-1) @ memory], -1))


@torch.no_grad()
def word_accuracy(model, loader):
    model.eval()
    right = total = 0
    for src, lengths, tgt in loader:
        pred = model(src, lengths, tgt[:, :-1]).argmax(-1)
        real = tgt[:, 1:] != PAD
        right += ((pred == tgt[:, 1:]) & real).sum().item()
        total += real.sum().item()
    return right / total


def main():
    torch.manual_seed(0)
    train = DataLoader(Pairs(1600, 2), batch_size=64, shuffle=True, collate_fn=collate)
    val = DataLoader(Pairs(300, 3), batch_size=100, collate_fn=collate)
    model = Seq2Seq()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
    for epoch in range(7):
        model.train()
        for src, lengths, tgt in train:
            logits = model(src, lengths, tgt[:, :-1])
            loss = criterion(logits.flatten(0, 1), tgt[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} val word accuracy {word_accuracy(model, val):.3f}")
    print(f"val word accuracy {word_accuracy(model, val):.3f}")


if __name__ == "__main__":
    main()
