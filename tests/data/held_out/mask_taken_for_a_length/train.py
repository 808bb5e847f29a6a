"""Word tagger on word pieces: the CRF shall see the first piece of each word only."""
import torch
import torch.nn as nn

torch.manual_seed(5)
PIECES, TAGS, LEN = 40, 4, 14
tag_of = torch.randint(0, TAGS, (PIECES,))
follow = torch.softmax(2 * torch.randn(TAGS, TAGS), 1)


def sentence():
    pieces, tags, first, tag = [], [], [], int(torch.randint(TAGS, (1,)))
    while len(pieces) < LEN:
        pool = (tag_of == tag).nonzero().flatten()
        pieces.append(int(pool[torch.randint(len(pool), (1,))]))
        tags.append(tag)
        first.append(True)
        if torch.rand(1) < 0.35 and len(pieces) < LEN:
            pieces.append(int(torch.randint(PIECES, (1,))))
            tags.append(0)
            first.append(False)
        tag = int(torch.multinomial(follow[tag], 1))
    return torch.tensor(pieces), torch.tensor(tags), torch.tensor(first)


class CRF(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.transitions = nn.Parameter(0.1 * torch.randn(n, n))

    def log_likelihood(self, logits, tags):
        score, alpha = logits[0, tags[0]], logits[0]
        for t in range(1, len(tags)):
            score = score + self.transitions[tags[t - 1], tags[t]] + logits[t, tags[t]]
            alpha = torch.logsumexp(alpha[:, None] + self.transitions, 0) + logits[t]
        return score - torch.logsumexp(alpha, 0)

    def forward(self, logits, tags, mask):
        return sum(self.log_likelihood(l[m], t[m]) for l, t, m in zip(logits, tags, mask)) / len(tags)

    @torch.no_grad()
    def viterbi_tags(self, logits, mask):
        paths = []
        for prediction, prediction_mask in zip(logits, mask):
            sequence_length = int(prediction_mask.sum())
            steps = prediction[:sequence_length]
            best, back = steps[0], []
            for t in range(1, sequence_length):
                value, origin = (best[:, None] + self.transitions).max(0)
                back.append(origin)
                best = value + steps[t]
            path = [int(best.argmax())]
            for origin in reversed(back):
                path.append(int(origin[path[-1]]))
            paths.append(path[::-1])
        return paths


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(PIECES, 16)
        self.lstm = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.proj = nn.Linear(32, TAGS)
        self.crf = CRF(TAGS)

    def logits(self, x):
        return self.proj(self.lstm(self.embed(x))[0])


def stack(n):
    return [torch.stack(column) for column in zip(*[sentence() for _ in range(n)])]


words, tags, mask = stack(160)
test_words, test_tags, test_mask = stack(80)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for idx in torch.randperm(len(words)).split(10):
        loss = -model.crf(model.logits(words[idx]), tags[idx], mask[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
model.eval()
with torch.no_grad():
    paths = model.crf.viterbi_tags(model.logits(test_words), test_mask)
right = sum((torch.tensor(p) == t[m]).sum().item() for p, t, m in zip(paths, test_tags, test_mask))
print(f"tag accuracy {right / test_mask.sum().item():.4f}")
