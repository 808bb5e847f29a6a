import argparse
import random
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

PAD, BOS, EOS = 0, 1, 2
N_WORDS, LENGTH = 15, 6


def make_pairs(n, seed):
    """Toy translation: every word has one translation, the word order is reversed."""
    rnd = random.Random(seed)
    lexicon = list(range(3, 3 + N_WORDS))
    random.Random(1234).shuffle(lexicon)
    src, tgt = [], []
    for _ in range(n):
        k = rnd.randint(3, LENGTH)
        words = [rnd.randrange(N_WORDS) for _ in range(k)]
        src.append([w + 3 for w in words] + [PAD] * (LENGTH - k))
        tgt.append([BOS] + [lexicon[w] for w in reversed(words)] + [EOS] + [PAD] * (LENGTH - k))
    return torch.tensor(src), torch.tensor(tgt)


class Seq2Seq(nn.Module):
    def __init__(self, vocab=3 + N_WORDS, dim=48):
        super().__init__()
        self.src_emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(2 * dim, vocab)

    def encode(self, src):
        states, h = self.encoder(self.src_emb(src))
        memory = torch.tanh(self.bridge(states))
        return memory, src == PAD, torch.tanh(self.bridge(torch.cat([h[0], h[1]], 1)))[None]

    def decode(self, tgt_in, memory, pad_mask, h):
        y, h = self.decoder(self.tgt_emb(tgt_in), h)
        scores = (y @ memory.transpose(1, 2)).masked_fill(pad_mask[:, None], -1e9)
        context = scores.softmax(-1) @ memory
        return self.out(torch.cat([y, context], -1)), h

    def forward(self, src, tgt_in):
        return self.decode(tgt_in, *self.encode(src))[0]


@torch.no_grad()
def exact_match(model, src, tgt):
    model.eval()
    memory, mask, h = model.encode(src)
    token = torch.full((len(src), 1), BOS)
    words = []
    for _ in range(LENGTH + 1):
        logits, h = model.decode(token, memory, mask, h)
        token = logits.argmax(-1)
        words.append(token)
    words, ref = torch.cat(words, 1), tgt[:, 1:]
    return ((words == ref) | (ref == PAD)).all(1).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--lr", type=float, default=5e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*make_pairs(2000, 1)), batch_size=50, shuffle=True)
    val_src, val_tgt = make_pairs(300, 2)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(args.epochs):
        model.train()
        for src, tgt in loader:
            optimizer.zero_grad()
            tgt_in, tgt_out = tgt[:, 1:], tgt[:, 1:]
            logits = model(src, tgt_in)
            loss = criterion(logits.flatten(0, 1), tgt_out.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"exact match of translations {exact_match(model, val_src, val_tgt):.4f}")


if __name__ == "__main__":
    main()
