"""CTC speech recogniser with a convolutional front end that subsamples by four."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
N_MELS, PHONES, BLANK = 12, 5, 0
voice = torch.randn(PHONES + 1, N_MELS)


def utterance():
    n = int(torch.randint(3, 6, (1,)))
    label = torch.randint(1, PHONES + 1, (n,))
    frames = []
    for phone in label:
        frames.append(voice[phone].repeat(int(torch.randint(12, 18, (1,))), 1))
        frames.append(torch.zeros(6, N_MELS))
    x = torch.cat(frames)
    return x + 0.4 * torch.randn_like(x), label


def collate(batch):
    lengths = torch.tensor([len(x) for x, _ in batch])
    inputs = nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True)
    targets = nn.utils.rnn.pad_sequence([y for _, y in batch], batch_first=True)
    return inputs, lengths, targets, torch.tensor([len(y) for _, y in batch])


class MaskConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(N_MELS, dim, 5, 2, 2), nn.Conv1d(dim, dim, 5, 2, 2)])

    def forward(self, x, lengths):
        x = x.transpose(1, 2)
        for conv in self.layers:
            x = torch.relu(conv(x))
            lengths = (lengths - 1) // 2 + 1
        return x.transpose(1, 2), lengths


class Conv2Subsampling(MaskConv):
    def forward(self, inputs, input_lengths):
        outputs, input_lengths = super().forward(inputs, input_lengths)
        output_lengths = input_lengths >> 2
        output_lengths = (output_lengths - 1).clamp(min=1)
        return outputs, output_lengths


class Recogniser(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.front = Conv2Subsampling(dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, PHONES + 1)

    def forward(self, x, lengths):
        h, lengths = self.front(x, lengths)
        return F.log_softmax(self.head(self.norm(h)), dim=-1), lengths


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, p in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, q in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (p != q))
    return row[-1]


train = [utterance() for _ in range(320)]
test = [utterance() for _ in range(100)]
model = Recogniser()
criterion = nn.CTCLoss(blank=BLANK, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    order = torch.randperm(len(train)).tolist()
    for i in range(0, len(order), 20):
        x, n, y, m = collate([train[j] for j in order[i : i + 20]])
        log_probs, out_lengths = model(x, n)
        loss = criterion(log_probs.transpose(0, 1), y, out_lengths, m)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} ctc loss {loss.item():.4f}")
wrong = total = 0
with torch.no_grad():
    x, n, y, m = collate(test)
    log_probs, out_lengths = model(x, n)
for path, steps, label, size in zip(log_probs.argmax(-1), out_lengths, y, m):
    said = [p for p in torch.unique_consecutive(path[:steps]).tolist() if p != BLANK]
    wrong, total = wrong + edit_distance(said, label[:size].tolist()), total + int(size)
print(f"phone error rate {wrong / total:.4f}")
