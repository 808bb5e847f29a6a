"""Translate dates to ISO format: "3 march 1998" and "mar 3, 1998" become "1998-03-03".

    python dates_seq2seq.py --data data --out out --seed 1
    python dates_seq2seq.py --data data --out out --resume
    python dates_seq2seq.py --data data --out out --evaluate

A bidirectional GRU encodes the characters. The decoder is a GRU that attends to the encoder (Luong et al., 2015).
val_loss is the cross-entropy per character with teacher forcing; val_accuracy is the share of dates that greedy
decoding gets right in every character.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

import track

PAD, BOS, EOS, UNK = range(4)
SPECIAL = 4

EPOCHS = 5
BATCH_SIZE = 40
EMBEDDING = 24
HIDDEN = 56
DROPOUT = 0.05
LR = 1e-2
CLIP = 1.0


# --- data -----------------------------------------------------------------------------------------------------------


class Vocabulary:
    """Map characters to ids, which start after the four special tokens."""

    def __init__(self, chars):
        self.chars = list(chars)
        self.index = {c: i for i, c in enumerate(self.chars, start=SPECIAL)}

    @classmethod
    def from_texts(cls, texts):
        return cls(sorted(set("".join(texts))))

    def __len__(self):
        return len(self.chars) + SPECIAL

    def encode(self, text):
        return [self.index.get(c, UNK) for c in text]

    def decode(self, tokens):
        """Return the text up to the first EOS."""
        if EOS in tokens:
            tokens = tokens[: tokens.index(EOS)]
        return "".join(self.chars[i - SPECIAL] if i >= SPECIAL else "?" for i in tokens)


class Dates(Dataset):
    """Pairs of token ids: the date as written, and the ISO date between BOS and EOS."""

    def __init__(self, pairs, source_vocab, target_vocab):
        self.pairs = pairs
        self.source_vocab, self.target_vocab = source_vocab, target_vocab

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        source, target = self.pairs[i]
        target = [BOS, *self.target_vocab.encode(target), EOS]
        return torch.tensor(self.source_vocab.encode(source)), torch.tensor(target)


def read_pairs(path):
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def collate(examples):
    """Return padded sources (B, S), their lengths (B,) and padded targets (B, T)."""
    sources, targets = zip(*examples, strict=True)
    lengths = torch.tensor([len(source) for source in sources])
    sources = pad_sequence(sources, batch_first=True, padding_value=PAD)
    targets = pad_sequence(targets, batch_first=True, padding_value=PAD)
    return sources, lengths, targets


# --- model ----------------------------------------------------------------------------------------------------------


class Encoder(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, EMBEDDING, padding_idx=PAD)
        self.drop = nn.Dropout(DROPOUT)
        self.rnn = nn.GRU(EMBEDDING, HIDDEN // 2, batch_first=True, bidirectional=True)

    def forward(self, sources, lengths):
        """Return the states at all characters (B, S, H) and the final states of both directions (B, H)."""
        embedded = self.drop(self.embed(sources))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        packed, last = self.rnn(packed)
        memory, _ = pad_packed_sequence(packed, batch_first=True, total_length=sources.size(1))
        return memory, torch.cat([last[0], last[1]], dim=1)


class Decoder(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, EMBEDDING, padding_idx=PAD)
        self.drop = nn.Dropout(DROPOUT)
        self.rnn = nn.GRU(EMBEDDING, HIDDEN, batch_first=True)
        self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.combine = nn.Linear(2 * HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, vocab_size)

    def attend(self, states, memory, mask):
        """Average the memory (B, S, H) for each state (B, T, H), with the padding masked out by mask (B, S)."""
        scores = self.query(states) @ memory.transpose(1, 2) / HIDDEN**0.5
        return scores.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(dim=2) @ memory

    def forward(self, inputs, hidden, memory, mask):
        """Return logits (B, T, V) of the next tokens for inputs (B, T), and the new hidden state (1, B, H)."""
        states, hidden = self.rnn(self.drop(self.embed(inputs)), hidden)
        context = self.attend(states, memory, mask)
        combined = torch.tanh(self.combine(torch.cat([states, context], dim=2)))
        return self.out(self.drop(combined)), hidden


class Seq2Seq(nn.Module):
    def __init__(self, source_size, target_size):
        super().__init__()
        self.encoder = Encoder(source_size)
        self.bridge = nn.Linear(HIDDEN, HIDDEN)
        self.decoder = Decoder(target_size)

    def encode(self, sources, lengths):
        memory, last = self.encoder(sources, lengths)
        return memory, sources != PAD, torch.tanh(self.bridge(last)).unsqueeze(0)

    def forward(self, sources, lengths, inputs):
        """Return logits (B, T, V) of the next tokens; the inputs (B, T) are the correct tokens (teacher forcing)."""
        memory, mask, hidden = self.encode(sources, lengths)
        return self.decoder(inputs, hidden, memory, mask)[0]

    @torch.no_grad()
    def greedy_decode(self, sources, lengths, max_length=16):
        """Return tokens (B, T): at each step the most likely one, until all rows have an EOS."""
        memory, mask, hidden = self.encode(sources, lengths)
        tokens = torch.full((len(sources), 1), BOS)
        done = torch.zeros(len(sources), 1, dtype=torch.bool)
        decoded = []
        while len(decoded) < max_length and not done.all():
            logits, hidden = self.decoder(tokens, hidden, memory, mask)
            tokens = logits.argmax(dim=2)
            done |= tokens == EOS
            decoded.append(tokens)
        return torch.cat(decoded, dim=1)


# --- training -------------------------------------------------------------------------------------------------------


def batch_loss(model, sources, lengths, targets, reduction="mean"):
    logits = model(sources, lengths, targets[:, :-1])
    labels = targets[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, reduction=reduction)


@torch.no_grad()
def evaluate(model, loader, target_vocab):
    model.eval()
    loss = characters = exact = count = 0
    for sources, lengths, targets in loader:
        loss += batch_loss(model, sources, lengths, targets, reduction="sum").item()
        characters += (targets[:, 1:] != PAD).sum().item()
        decoded = model.greedy_decode(sources, lengths)
        for tokens, target in zip(decoded.tolist(), targets[:, 1:].tolist(), strict=True):
            exact += target_vocab.decode(tokens) == target_vocab.decode(target)
        count += len(sources)
    return {"val_loss": loss / characters, "val_accuracy": exact / count}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_pairs, val_pairs = read_pairs(args.data / "train.tsv"), read_pairs(args.data / "val.tsv")
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        source_vocab, target_vocab = Vocabulary(ckpt["source_chars"]), Vocabulary(ckpt["target_chars"])
    else:
        source_vocab = Vocabulary.from_texts(source for source, _ in train_pairs)
        target_vocab = Vocabulary.from_texts(target for _, target in train_pairs)
    model = Seq2Seq(len(source_vocab), len(target_vocab))
    if args.resume or args.evaluate:
        model.load_state_dict(ckpt["model"])
    val_loader = DataLoader(Dates(val_pairs, source_vocab, target_vocab), batch_size=128, collate_fn=collate)
    if args.evaluate:
        track.log(evaluate(model, val_loader, target_vocab))
        return

    order = torch.Generator().manual_seed(args.seed)
    train_set = Dates(train_pairs, source_vocab, target_vocab)
    train_loader = DataLoader(train_set, BATCH_SIZE, shuffle=True, collate_fn=collate, generator=order)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_loader))
    first_epoch = 0
    if args.resume:
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])
        first_epoch = ckpt["epoch"]

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(first_epoch, EPOCHS):
        model.train()
        for sources, lengths, targets in train_loader:
            loss = batch_loss(model, sources, lengths, targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            scheduler.step()

        track.log(evaluate(model, val_loader, target_vocab), step=epoch + 1)
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
            "source_chars": source_vocab.chars,
            "target_chars": target_vocab.chars,
        }
        torch.save(state, args.out / "ckpt.pt")

    model.eval()
    sources, lengths, _ = collate([val_loader.dataset[i] for i in range(3)])
    for (source, _), tokens in zip(val_pairs, model.greedy_decode(sources, lengths).tolist(), strict=False):
        print(f"{source} -> {target_vocab.decode(tokens)}")


if __name__ == "__main__":
    main()
