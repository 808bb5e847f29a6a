"""Read the moves of a plotter and write the column reached after each move."""
import random

import torch
import torch.nn as nn

MOVES, COLUMNS, START, OUT_LEN = 5, 12, 12, 8


def make_runs(n, seed):
    rng = random.Random(seed)
    moves, columns = [], []
    for _ in range(n):
        at, m, c = 0, [], [START]
        for _ in range(OUT_LEN):
            move = rng.randrange(MOVES)
            at = (at + move - 2) % COLUMNS
            m.append(move)
            c.append(at)
        moves.append(m)
        columns.append(c)
    return torch.tensor(moves), torch.tensor(columns)


class PlotterModel(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.src = nn.Embedding(MOVES, 24)
        self.tgt = nn.Embedding(COLUMNS + 1, 24)
        self.encoder = nn.GRU(24, dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.decoder = nn.GRU(24, dim, batch_first=True)
        self.query = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(3 * dim, COLUMNS)

    def encode(self, src):
        memory, h = self.encoder(self.src(src))
        return memory, torch.tanh(self.bridge(torch.cat([h[0], h[1]], 1)))[None]

    def decode(self, tokens, memory, state):
        h, state = self.decoder(self.tgt(tokens), state)
        score = self.query(h) @ memory.transpose(1, 2)
        weights = score.softmax(-1)
        return self.out(torch.cat([h, weights @ memory], -1)), state

    def forward(self, src, tgt_in):
        memory, state = self.encode(src)
        return self.decode(tgt_in, memory, state)[0]

    @torch.no_grad()
    def generate(self, src):
        memory, state = self.encode(src)
        token, out = torch.full((len(src), 1), START), []
        for _ in range(OUT_LEN):
            logits, state = self.decode(token, memory, state)
            token = logits.argmax(-1)
            out.append(token)
        return torch.cat(out, 1)


def column_accuracy(model, src, tgt):
    model.eval()
    with torch.no_grad():
        pred = model(src, tgt[:, :-1]).argmax(-1)
    return (pred == tgt[:, 1:]).float().mean().item()


def main():
    torch.manual_seed(0)
    src, tgt = make_runs(1600, 1)
    vsrc, vtgt = make_runs(300, 2)
    model = PlotterModel()
    opt = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(9):
        model.train()
        for idx in torch.randperm(len(src)).split(40):
            logits = model(src[idx], tgt[idx, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[idx, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f} column accuracy {column_accuracy(model, vsrc, vtgt):.3f}")
    print(f"validation column accuracy {column_accuracy(model, vsrc, vtgt):.3f}")


if __name__ == "__main__":
    main()
