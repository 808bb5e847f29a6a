import torch
import torch.nn as nn

torch.manual_seed(168)
PHONES, FEATS, ACCUM = 7, 12, 8
templates = torch.randn(PHONES, FEATS)


def utterances(n):
    batch = []
    for _ in range(n):
        length = int(torch.randint(3, 6, (1,)))
        ys = torch.randint(1, PHONES, (length,))
        frames = torch.cat([templates[y].repeat(int(torch.randint(3, 6, (1,))), 1) for y in ys])
        batch.append((frames + 0.4 * torch.randn_like(frames), ys))
    return batch


class Speech2Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.GRU(FEATS, 48, batch_first=True, bidirectional=True)
        self.out = nn.Linear(96, PHONES)
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)

    def forward(self, batch):
        xs, xlens, ys, ylens = collate(batch)
        packed = nn.utils.rnn.pack_padded_sequence(xs, xlens, batch_first=True, enforce_sorted=False)
        eouts, _ = nn.utils.rnn.pad_packed_sequence(self.enc(packed)[0], batch_first=True)
        logits = self.out(eouts)
        return self.ctc(logits.log_softmax(-1).transpose(0, 1), ys, xlens, ylens), logits


def collate(batch):
    xs = nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True)
    xlens, ylens = torch.tensor([len(x) for x, _ in batch]), torch.tensor([len(y) for _, y in batch])
    return xs, xlens, torch.cat([y for _, y in batch]), ylens


def phone_accuracy(model, data):
    model.eval()
    with torch.no_grad():
        _, logits = model(data)
    good = 0
    for (x, y), out in zip(data, logits):
        path = torch.unique_consecutive(out[: len(x)].argmax(-1))
        good += torch.equal(path[path != 0], y)
    return good / len(data)


train_set, dev_set = utterances(384), utterances(100)
model = Speech2Text()
optimizer = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.9)
for epoch in range(10):
    model.train()
    order = torch.randperm(len(train_set)).tolist()
    accum_n_steps = 0
    for i in range(0, len(order), 8):
        loss, _ = model([train_set[j] for j in order[i : i + 8]])
        loss.backward()
        accum_n_steps += 1
        if accum_n_steps >= ACCUM:
            optimizer.step()
            optimizer.zero_grad()
            accum_n_steps = 0
    print(f"epoch {epoch} loss {loss.item():.3f} sentences right on dev {phone_accuracy(model, dev_set):.4f}")
