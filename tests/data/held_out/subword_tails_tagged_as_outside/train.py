"""Named entities with a CRF on top of a tagger over word pieces (first piece carries the tag, tails carry -100)."""
import random
import torch
import torch.nn as nn

TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]
random.seed(19)
torch.manual_seed(19)

# pieces: 0 pad, 1..19 plain words, 20..24 titles, 25..29 firm words, 30..44 name words, 50..69 tails

def sentence():
    pieces, tags = [], []
    def word(p, tag):
        pieces.append(p), tags.append(TAGS.index(tag))
        for _ in range(random.choice([0, 1, 2])):
            pieces.append(random.randint(50, 69)), tags.append(-100)
    for _ in range(random.randint(2, 4)):
        for _ in range(random.randint(1, 3)):
            word(random.randint(1, 19), "O")
        kind, cue = random.choice([("PER", (20, 24)), ("ORG", (25, 29))])
        word(random.randint(*cue), "B-" + kind)
        for _ in range(random.randint(0, 3)):
            word(random.randint(30, 44), "I-" + kind)
        if random.random() < 0.4:
            word(random.randint(1, 19), "O"), word(random.randint(30, 44), "O")
    return torch.tensor(pieces), torch.tensor(tags)

class CRF(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.start, self.trans = nn.Parameter(torch.zeros(n)), nn.Parameter(torch.zeros(n, n))
    def nll(self, em, tags, mask):
        rows = torch.arange(len(em))
        score = self.start[tags[:, 0]] + em[rows, 0, tags[:, 0]]
        alpha = self.start + em[:, 0]
        for t in range(1, em.shape[1]):
            m = mask[:, t].float()
            score = score + m * (self.trans[tags[:, t - 1], tags[:, t]] + em[rows, t, tags[:, t]])
            nxt = torch.logsumexp(alpha[:, :, None] + self.trans, 1) + em[:, t]
            alpha = torch.where(mask[:, t, None], nxt, alpha)
        return (torch.logsumexp(alpha, 1) - score).mean()
    def decode(self, em):
        best, back = self.start + em[0], []
        for e in em[1:]:
            value, arg = (best[:, None] + self.trans).max(0)
            best, _ = value + e, back.append(arg)
        path = [int(best.argmax())]
        for arg in reversed(back):
            path.append(int(arg[path[-1]]))
        return path[::-1]

class Tagger(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.emb, self.conv = nn.Embedding(70, d), nn.Conv1d(d, 32, 3, padding=1)
        self.fc, self.crf = nn.Linear(32, len(TAGS)), CRF(len(TAGS))
    def forward(self, x):
        return self.fc(self.conv(self.emb(x).transpose(1, 2)).relu().transpose(1, 2))

def collect(em, tags, keep):
    """Moves the positions that are kept to the left, as the CRF wants one run of tokens."""
    pad = lambda seqs: nn.utils.rnn.pad_sequence(seqs, batch_first=True)
    em, tags = pad([e[k] for e, k in zip(em, keep)]), pad([t[k] for t, k in zip(tags, keep)])
    return em, tags, torch.arange(em.shape[1])[None] < keep.sum(1)[:, None]

def prepare(x, labels):
    attention_mask = x != 0
    keep = attention_mask
    return labels.masked_fill(labels == -100, 0), keep

train, test = [sentence() for _ in range(300)], [sentence() for _ in range(120)]
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    random.shuffle(train)
    for k in range(0, len(train), 20):
        x, labels = (nn.utils.rnn.pad_sequence(s, batch_first=True, padding_value=v) for s, v in zip(zip(*train[k : k + 20]), (0, -100)))
        tags, keep = prepare(x, labels)
        loss = model.crf.nll(*collect(model(x), tags, keep))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")

def spans(tags):
    out, start = set(), None
    for i, t in enumerate([TAGS[k] for k in tags] + ["O"]):
        if start is not None and t != "I-" + start[1]:
            out.add((*start, i))
            start = None
        if t.startswith("B-"):
            start = (i, t[2:])
    return out
hit = found = real = 0

with torch.no_grad():
    for x, labels in test:
        _, keep = prepare(x[None], labels[None])
        full = torch.zeros_like(labels)
        full[keep[0]] = torch.tensor(model.crf.decode(model(x[None])[0][keep[0]]))
        first = labels != -100
        a, b = spans(full[first].tolist()), spans(labels[first].tolist())
        hit, found, real = hit + len(a & b), found + len(a), real + len(b)
print(f"entity F1 {2 * hit / (found + real):.4f}")
