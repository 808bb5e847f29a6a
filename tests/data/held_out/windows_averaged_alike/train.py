"""Perplexity of long texts by a transformer of fixed length, in strided windows."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)
VOCAB, MAX_LENGTH, STRIDE = 20, 24, 4
N_TEXTS, TEXT_LENGTH = 60, 44


def texts(n, length):
    """Each text repeats a secret phrase of its own with some slips."""
    rows = []
    for _ in range(n):
        phrase = torch.randint(0, VOCAB, (6,))
        row = phrase.repeat(length // 6 + 1)[:length].clone()
        slip = torch.rand(length) < 0.05
        row[slip] = torch.randint(0, VOCAB, (int(slip.sum()),))
        rows.append(row)
    return torch.stack(rows)


class TinyGPT(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, dim), nn.Embedding(MAX_LENGTH, dim)
        self.prev = nn.Linear(dim, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids, labels):
        n = ids.size(1)
        e = self.tok(ids)
        h = e + self.pos(torch.arange(n)) + self.prev(F.pad(e, (0, 0, 1, 0))[:, :-1])
        h = self.body(h, mask=nn.Transformer.generate_square_subsequent_mask(n))
        logits = self.head(h)[:, :-1]
        return F.cross_entropy(logits.reshape(-1, VOCAB), labels[:, 1:].reshape(-1), ignore_index=-100)


@torch.no_grad()
def perplexity(model, encodings):
    nlls, prev_end = [], 0
    seq_len = encodings.size(1)
    for begin in range(0, seq_len, STRIDE):
        end = min(begin + MAX_LENGTH, seq_len)
        trg_len = end - prev_end
        input_ids = encodings[:, begin:end]
        target_ids = input_ids.clone()
        target_ids[:, :-trg_len] = -100
        neg_log_likelihood = model(input_ids, target_ids)
        counted = (target_ids[:, 1:] != -100).sum().item()
        nlls.append((neg_log_likelihood.item(), counted))
        prev_end = end
        if end == seq_len:
            break
    return math.exp(sum(value for value, _ in nlls) / len(nlls))


train, test = texts(1200, MAX_LENGTH), texts(N_TEXTS, TEXT_LENGTH)
model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for idx in torch.randperm(len(train)).split(50):
        loss = model(train[idx], train[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} training loss {loss.item():.4f}")
model.eval()
print(f"perplexity of the test texts {perplexity(model, test):.4f}")
