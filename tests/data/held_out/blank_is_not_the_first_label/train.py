"""Small speech recogniser: frames -> GRU -> CTC.  The alphabet is a string, '_' is the blank."""
import random

import torch
import torch.nn as nn

labels = "etaoinsh_"
random.seed(0)
torch.manual_seed(0)
FEATS = 12
voice = torch.randn(len(labels), FEATS)  # what each letter sounds like


class GreedyDecoder:
    def __init__(self, labels, blank_index):
        self.labels, self.blank_index = labels, blank_index

    def decode(self, path):
        text, previous = [], None
        for k in path:
            if k != previous and k != self.blank_index:
                text.append(self.labels[k])
            previous = k
        return "".join(text)


def utterance():
    text = "".join(random.choice(labels[:-1]) for _ in range(random.randint(3, 7)))
    frames = []
    for ch in text:
        frames += [voice[labels.index(ch)] + 0.5 * torch.randn(FEATS) for _ in range(random.randint(2, 3))]
        frames += [0.3 * torch.randn(FEATS) for _ in range(random.randint(1, 2))]
    return torch.stack(frames), text


def collate(items):
    frames, texts = zip(*items)
    lengths = torch.tensor([len(f) for f in frames])
    x = nn.utils.rnn.pad_sequence(frames, batch_first=True)
    y = torch.tensor([labels.index(c) for t in texts for c in t])
    return x, lengths, y, torch.tensor([len(t) for t in texts]), texts


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(FEATS, 48, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(96, len(labels))

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(-1)


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        new = [i]
        for j, cb in enumerate(b, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (ca != cb)))
        row = new
    return row[-1]


train = [utterance() for _ in range(400)]
test = [utterance() for _ in range(100)]
model = Recogniser()
criterion = nn.CTCLoss()
decoder = GreedyDecoder(labels, blank_index=labels.index("_"))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(12):
    random.shuffle(train)
    for k in range(0, len(train), 20):
        x, lx, y, ly, _ = collate(train[k : k + 20])
        loss = criterion(model(x).transpose(0, 1), y, lx, ly)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    x, lx, _, ly, texts = collate(test)
    with torch.no_grad():
        best = model(x).argmax(-1)
    wrong = sum(distance(decoder.decode(best[i, : lx[i]].tolist()), t) for i, t in enumerate(texts))
    print(f"epoch {epoch + 1} loss {loss.item():.3f} CER {wrong / ly.sum().item():.4f}")
