import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3643)
PAD, SOS, EOS, WORDS, MAX_LENGTH = 0, 1, 2, 12, 12
dictionary = torch.randperm(WORDS) + 3


def make_pairs(n):
    pairs = []
    for _ in range(n):
        src = torch.randint(0, WORDS, (torch.randint(1, 4, (1,)).item(),))
        pairs.append((torch.cat([src + 3, torch.tensor([EOS])]), torch.cat([dictionary[src], torch.tensor([EOS])])))
    return pairs


def pad(rows):
    out = torch.full((len(rows), MAX_LENGTH), PAD)
    for k, row in enumerate(rows):
        out[k, : len(row)] = row
    return out


class EncoderRNN(nn.Module):
    def __init__(self, hidden_size=64):
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 3, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, input, lengths):
        embedded = self.embedding(input)
        output, hidden = self.gru(embedded)
        return hidden


class DecoderRNN(nn.Module):
    def __init__(self, hidden_size=64):
        super().__init__()
        self.embedding = nn.Embedding(WORDS + 3, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, WORDS + 3)

    def forward(self, hidden, target=None, steps=MAX_LENGTH):
        token = torch.full((hidden.size(1), 1), SOS)
        outputs = []
        for t in range(steps):
            output, hidden = self.gru(F.relu(self.embedding(token)), hidden)
            outputs.append(self.out(output))
            token = target[:, t : t + 1] if target is not None else outputs[-1].argmax(-1)
        return torch.cat(outputs, 1)


train_pairs, test_pairs = make_pairs(960), make_pairs(120)
encoder, decoder = EncoderRNN(), DecoderRNN()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=4e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for epoch in range(1, 11):
    encoder.train(), decoder.train()
    order, total = torch.randperm(len(train_pairs)).tolist(), 0.0
    for i in range(0, len(order), 48):
        chunk = [train_pairs[j] for j in order[i : i + 48]]
        lengths = torch.tensor([len(s) for s, _ in chunk])
        source, target = pad([s for s, _ in chunk]), pad([t for _, t in chunk])
        steps = max(len(t) for _, t in chunk)
        optimizer.zero_grad()
        logits = decoder(encoder(source, lengths), target, steps)
        loss = criterion(logits.transpose(1, 2), target[:, :steps])
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    encoder.eval(), decoder.eval()
    good = words = 0
    with torch.no_grad():
        for source, target in test_pairs:
            guess = decoder(encoder(source[None], torch.tensor([len(source)])), steps=len(target))[0].argmax(-1)
            good += (guess == target).sum().item()
            words += len(target)
    print(f"epoch {epoch} loss {total:.4f} words translated rightly {good / words:.4f}")
