import random
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
PAD_TAG = 0
TAGS = {"<pad>": 0, "O": 1, "NAME": 2, "CITY": 3, "DATE": 4}
VOCAB = 120


def sentence():
    """Word ids and tags; ambiguous words take their tag from the word before."""
    n = random.choice([4, 5, 6, 7, 8, 30])
    words, tags = [], []
    while len(words) < n:
        r = random.random()
        if r < 0.45:
            words.append(random.randrange(10, 70))
            tags.append(TAGS["O"])
        else:
            kind = random.choice(["NAME", "CITY", "DATE"])
            cue = {"NAME": 1, "CITY": 2, "DATE": 3}[kind]
            words += [cue if random.random() < 0.75 else random.randrange(1, 4), random.randrange(70, VOCAB)]
            tags += [TAGS["O"], TAGS[kind]]
    return torch.tensor(words[:n]), torch.tensor(tags[:n])


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return (pad_sequence(words, batch_first=True), lengths,
            pad_sequence(tags, batch_first=True, padding_value=PAD_TAG))


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.emb(words), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        logits = self.out(h)
        real = torch.arange(words.size(1))[None, :] < lengths[:, None]
        return logits, real


train_loader = DataLoader([sentence() for _ in range(700)], batch_size=35, shuffle=True, collate_fn=collate)
val_loader = DataLoader([sentence() for _ in range(300)], batch_size=50, collate_fn=collate)
fresh = [sentence() for _ in range(300)]
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()


def accuracy(loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for words, lengths, tags in loader:
            logits, real = model(words, lengths)
            pred = logits.argmax(-1).masked_fill(~real, PAD_TAG)
            correct += (pred == tags).sum().item()
            total += tags.numel()
    return correct / total


for epoch in range(6):
    model.train()
    for words, lengths, tags in train_loader:
        optimizer.zero_grad()
        logits, real = model(words, lengths)
        loss = criterion(logits[real], tags[real])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} val token accuracy {accuracy(val_loader):.4f}")

# one sentence at a time, as the annotation tool calls it
single = accuracy(DataLoader(fresh, batch_size=1, collate_fn=collate))
val = accuracy(val_loader)
print(f"val token accuracy {val:.4f}, in the tool {single:.4f}, difference {abs(val - single):.4f}")
