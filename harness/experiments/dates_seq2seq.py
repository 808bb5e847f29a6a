"""Date normalization, character by character: "3 march 1998" or "mar 3, 1998" -> "1998-03-03".

GRU encoder-decoder with the "general" attention of Luong et al. 2015, https://arxiv.org/abs/1508.04025
"""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader

import track

SPECIALS = ["<pad>", "<s>", "</s>", "<unk>"]
PAD, BOS, EOS, UNK = range(4)


class Vocab:
    def __init__(self, chars):
        self.chars = list(chars)
        self.itos = SPECIALS + self.chars
        self.stoi = {c: i for i, c in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, text):
        return [self.stoi.get(c, UNK) for c in text]

    def decode(self, ids):
        chars = []
        for i in ids:
            if i == EOS:
                break
            chars.append(self.itos[i])
        return "".join(chars)


def read_tsv(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


class Encoder(nn.Module):
    def __init__(self, n_chars, emb, hid, dropout):
        super().__init__()
        self.embed = nn.Embedding(n_chars, emb, padding_idx=PAD)
        self.drop = nn.Dropout(dropout)
        self.rnn = nn.GRU(emb, hid // 2, batch_first=True, bidirectional=True)

    def forward(self, src, src_len):
        x = self.drop(self.embed(src))
        x = pack_padded_sequence(x, src_len, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(x)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=src.size(1))
        return out, torch.cat((h[0], h[1]), dim=1)  # (B, S, hid), (B, hid)


class Attention(nn.Module):
    def __init__(self, hid):
        super().__init__()
        self.query = nn.Linear(hid, hid, bias=False)
        self.combine = nn.Linear(2 * hid, hid)
        self.scale = hid**-0.5

    def forward(self, states, memory, mask):
        # states (B, T, hid), memory (B, S, hid), mask (B, S) is False at the padding
        scores = torch.bmm(self.query(states), memory.transpose(1, 2)) * self.scale
        scores = scores.masked_fill(~mask[:, None], -torch.inf)
        context = torch.bmm(scores.softmax(-1), memory)
        return self.combine(torch.cat((states, context), dim=-1)).tanh()


class Decoder(nn.Module):
    def __init__(self, n_chars, emb, hid, dropout):
        super().__init__()
        self.embed = nn.Embedding(n_chars, emb, padding_idx=PAD)
        self.drop = nn.Dropout(dropout)
        self.rnn = nn.GRU(emb, hid, batch_first=True)
        self.attn = Attention(hid)
        self.out = nn.Linear(hid, n_chars)

    def forward(self, tgt_in, h, memory, mask):
        states, h = self.rnn(self.drop(self.embed(tgt_in)), h)
        return self.out(self.drop(self.attn(states, memory, mask))), h


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, emb=24, hid=56, dropout=0.05):
        super().__init__()
        self.encoder = Encoder(n_src, emb, hid, dropout)
        self.bridge = nn.Linear(hid, hid)
        self.decoder = Decoder(n_tgt, emb, hid, dropout)

    def encode(self, src, src_len):
        memory, last = self.encoder(src, src_len)
        h0 = self.bridge(last).tanh().unsqueeze(0)
        return h0, memory, src != PAD

    def forward(self, src, src_len, tgt_in):
        logits, _ = self.decoder(tgt_in, *self.encode(src, src_len))
        return logits

    @torch.no_grad()
    def greedy(self, src, src_len, max_len=16):
        h, memory, mask = self.encode(src, src_len)
        token = src.new_full((src.size(0), 1), BOS)
        finished = torch.zeros_like(token, dtype=torch.bool)
        tokens = []
        for _ in range(max_len):
            logits, h = self.decoder(token, h, memory, mask)
            token = logits.argmax(-1)
            tokens.append(token)
            finished |= token == EOS
            if finished.all():
                break
        return torch.cat(tokens, dim=1)


class Trainer:
    """Owns the network, its optimizer and the data of one run.

    Shuffling and dropout both draw from torch's global generator, whose state is in the checkpoint.
    """

    def __init__(self, data_dir, out_dir, ckpt=None, epochs=5, batch_size=40, lr=1e-2, max_norm=1.0):
        self.out_dir = out_dir
        self.epochs, self.max_norm = epochs, max_norm
        self.epoch = 0

        pairs = read_tsv(data_dir / "train.tsv")
        self.val_pairs = read_tsv(data_dir / "val.tsv")
        if ckpt is None:
            self.src_vocab, self.tgt_vocab = (Vocab(sorted({*"".join(texts)})) for texts in zip(*pairs, strict=True))
        else:
            self.src_vocab, self.tgt_vocab = Vocab(ckpt["src_chars"]), Vocab(ckpt["tgt_chars"])
        self.train_loader = DataLoader(pairs, batch_size, shuffle=True, collate_fn=self.collate)
        self.val_loader = DataLoader(self.val_pairs, 128, collate_fn=self.collate)

        self.net = Seq2Seq(len(self.src_vocab), len(self.tgt_vocab))
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")
        self.optim = torch.optim.Adam(self.net.parameters(), lr=lr, fused=True)
        self.sched = CosineAnnealingLR(self.optim, T_max=epochs * len(self.train_loader))
        if ckpt is not None:
            self.load(ckpt)

    def collate(self, pairs):
        src = [torch.tensor(self.src_vocab.encode(s)) for s, _ in pairs]
        tgt = [torch.tensor([BOS, *self.tgt_vocab.encode(t), EOS]) for _, t in pairs]
        src_len = torch.tensor([len(s) for s in src])
        src = pad_sequence(src, batch_first=True, padding_value=PAD)
        tgt = pad_sequence(tgt, batch_first=True, padding_value=PAD)
        return src, src_len, tgt

    def loss(self, src, src_len, tgt):
        """Teacher forcing. Returns the summed loss and the number of target characters."""
        tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]
        logits = self.net(src, src_len, tgt_in)
        loss = self.criterion(logits.transpose(1, 2), tgt_out)
        return loss, tgt_out.ne(PAD).sum()

    def fit(self):
        while self.epoch < self.epochs:
            train_loss = self.train_epoch()
            self.epoch += 1
            metrics = self.validate()
            track.log(metrics, step=self.epoch)
            print(f"epoch {self.epoch}/{self.epochs}: loss {train_loss:.3f}, exact match {metrics['val_accuracy']:.1%}")
            self.save()

    def train_epoch(self):
        self.net.train()
        total = 0.0
        for src, src_len, tgt in self.train_loader:
            self.optim.zero_grad()
            loss, n_chars = self.loss(src, src_len, tgt)
            loss = loss / n_chars
            loss.backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), self.max_norm)
            self.optim.step()
            self.sched.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        loss_sum = n_chars = n_exact = 0
        for src, src_len, tgt in self.val_loader:
            loss, n = self.loss(src, src_len, tgt)
            loss_sum += loss.item()
            n_chars += n.item()
            hyp = self.net.greedy(src, src_len)
            for h, t in zip(hyp.tolist(), tgt[:, 1:].tolist(), strict=True):
                n_exact += self.tgt_vocab.decode(h) == self.tgt_vocab.decode(t)
        return {"val_loss": loss_sum / n_chars, "val_accuracy": n_exact / len(self.val_pairs)}

    def translate(self, texts):
        self.net.eval()
        src, src_len, _ = self.collate([(text, "") for text in texts])
        return [self.tgt_vocab.decode(ids) for ids in self.net.greedy(src, src_len).tolist()]

    def save(self):
        self.out_dir.mkdir(parents=True, exist_ok=True)
        ckpt = {
            "epoch": self.epoch,
            "model": self.net.state_dict(),
            "optim": self.optim.state_dict(),
            "sched": self.sched.state_dict(),
            "rng_state": torch.get_rng_state(),
            "src_chars": self.src_vocab.chars,
            "tgt_chars": self.tgt_vocab.chars,
        }
        torch.save(ckpt, self.out_dir / "ckpt.pt")

    def load(self, ckpt):
        self.net.load_state_dict(ckpt["model"])
        self.optim.load_state_dict(ckpt["optim"])
        self.sched.load_state_dict(ckpt["sched"])
        self.epoch = ckpt["epoch"]
        torch.set_rng_state(ckpt["rng_state"])


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="Train a model that normalizes dates.")
    ap.add_argument("--data", type=Path, required=True, help="folder with train.tsv and val.tsv")
    ap.add_argument("--out", type=Path, required=True, help="folder for ckpt.pt")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--evaluate", action="store_true", help="only validate the checkpoint")
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    ckpt = torch.load(args.out / "ckpt.pt", weights_only=True) if args.resume or args.evaluate else None
    trainer = Trainer(args.data, args.out, ckpt)
    if args.evaluate:
        track.log(trainer.validate())
    else:
        trainer.fit()
        texts = [src for src, _ in trainer.val_pairs[:3]]
        for text, iso in zip(texts, trainer.translate(texts), strict=True):
            print(f"{text} -> {iso}")
