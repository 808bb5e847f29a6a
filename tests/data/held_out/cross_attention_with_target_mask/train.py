import random
import torch
import torch.nn as nn

# A toy pair of languages: words map one to one, but the source has particles (ids 3..6) that are not translated.
PAD, BOS, EOS = 0, 1, 2
PARTICLES = range(3, 7)
WORDS = range(7, 19)
MAXLEN = 20

random.seed(1)
torch.manual_seed(1)
dictionary = dict(zip(WORDS, random.sample(list(WORDS), len(WORDS))))


def sentence():
    src, tgt = [], []
    for _ in range(random.randint(3, 6)):
        for _ in range(random.choice([0, 1, 2])):
            src.append(random.choice(PARTICLES))
        w = random.choice(WORDS)
        src.append(w)
        tgt.append(dictionary[w])
    return src, [BOS] + tgt + [EOS]


def batch(n):
    s = torch.full((n, MAXLEN), PAD)
    t = torch.full((n, MAXLEN), PAD)
    for k in range(n):
        src, tgt = sentence()
        s[k, : len(src)] = torch.tensor(src)
        t[k, : len(tgt)] = torch.tensor(tgt)
    return s, t


class Translator(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.src_tok, self.tgt_tok = nn.Embedding(19, d), nn.Embedding(19, d)
        self.pos = nn.Embedding(MAXLEN, d)
        self.encoder = nn.TransformerEncoderLayer(d, 4, 96, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(d, 4, 96, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d, 19)

    def forward(self, src, tgt):
        place = torch.arange(MAXLEN)
        padding = src == PAD
        memory = self.encoder(self.src_tok(src) + self.pos(place[: src.shape[1]]), src_key_padding_mask=padding)
        length = tgt.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        padding = tgt == PAD
        h = self.decoder(
            self.tgt_tok(tgt) + self.pos(place[:length]),
            memory,
            tgt_mask=causal,
            tgt_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.out(h)


model = Translator()
optim = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(700):
    src, tgt = batch(32)
    logits = model(src, tgt)[:, :-1]
    loss = loss_fn(logits.reshape(-1, 19), tgt[:, 1:].reshape(-1))
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 150 == 0:
        print(step, round(loss.item(), 4))

model.eval()
src, tgt = batch(300)
with torch.no_grad():
    predicted = model(src, tgt)[:, :-1].argmax(-1)
real = tgt[:, 1:] != PAD
print("token accuracy on new sentences: %.4f" % (predicted == tgt[:, 1:])[real].float().mean().item())
