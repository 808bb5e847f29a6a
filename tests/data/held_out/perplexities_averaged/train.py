import math

import torch
import torch.nn as nn

torch.manual_seed(0)
VOCAB, PAD = 24, 0

# a Markov chain over 22 words; 23 ends a sentence
transition = torch.softmax(2.5 * torch.randn(VOCAB, VOCAB), dim=1)
transition[:, PAD] = 0


def sentence():
    words = [int(torch.randint(1, VOCAB - 1, (1,)))]
    limit = int(torch.randint(3, 30, (1,)))
    while len(words) < limit and words[-1] != VOCAB - 1:
        words.append(int(torch.multinomial(transition[words[-1]], 1)))
    return torch.tensor(words)


def corpus(n):
    found = []
    while len(found) < n:
        s = sentence()
        if len(s) > 1:
            found.append(s)
    return found


class RNNLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, reduction="none")


def nll(model, batch):
    """Negative log-likelihood of each sentence, and the number of its words."""
    padded = nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
    inputs, targets = padded[:, :-1], padded[:, 1:]
    losses = loss_fn(model(inputs).transpose(1, 2), targets)
    return losses.sum(1), (targets != PAD).sum(1)


@torch.no_grad()
def perplexity(model, sentences):
    model.eval()
    values = []
    for i in range(0, len(sentences), 50):
        total, words = nll(model, sentences[i : i + 50])
        values += torch.exp(total / words).tolist()
    return sum(values) / len(values)


train, valid = corpus(900), corpus(300)
model = RNNLM()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    model.train()
    order = torch.randperm(len(train)).tolist()
    seen, count = 0.0, 0
    for i in range(0, len(order), 30):
        total, words = nll(model, [train[j] for j in order[i : i + 30]])
        loss = total.sum() / words.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen, count = seen + total.sum().item(), count + words.sum().item()
    print(f"epoch {epoch} train ppl {math.exp(seen / count):.2f} valid ppl {perplexity(model, valid):.2f}")
print(f"validation perplexity {perplexity(model, valid):.3f}")
