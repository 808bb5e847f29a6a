import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
MAX_CONTEXT = 64
TEXT = "the quick brown fox jumps over the lazy dog and the small cat sleeps near the warm stove while it rains. "
chars = sorted(set(TEXT))
stoi = {c: i for i, c in enumerate(chars)}
words = TEXT.split()


def sample_text(n, seed):
    g = torch.Generator().manual_seed(seed)
    out = []
    while sum(len(w) + 1 for w in out) < n:
        i = int(torch.randint(0, len(words) - 3, (1,), generator=g))
        out += words[i : i + 3]
    return torch.tensor([stoi[c] for c in " ".join(out)])


train_data, val_data = sample_text(12000, 0), sample_text(2000, 1)


class CharGRU(nn.Module):
    def __init__(self, vocab, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.gru(self.emb(ids))
        return self.out(h)


def get_batch(data, n=32, length=32):
    pos = torch.randint(0, len(data) - length - 1, (n,))
    x = torch.stack([data[p : p + length] for p in pos])
    y = torch.stack([data[p + 1 : p + length + 1] for p in pos])
    return x, y


@torch.no_grad()
def generate(model, prompt_ids, max_new_tokens):
    model.eval()
    max_length = len(prompt_ids) + max_new_tokens
    prompt_ids = prompt_ids[-(MAX_CONTEXT // 2 - 1) :]
    ids = prompt_ids.clone()
    while len(ids) < max_length:
        logits = model(ids[-MAX_CONTEXT:].unsqueeze(0))[0, -1]
        ids = torch.cat([ids, logits.argmax().view(1)])
    return ids[len(prompt_ids) :]


model = CharGRU(len(chars))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(200):
    model.train()
    x, y = get_batch(train_data)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            x, y = get_batch(val_data, n=128)
            val_loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        print(f"step {step + 1} loss {loss.item():.3f} val loss {val_loss.item():.3f}")

prompt = "the small cat sleeps near the warm stove while it rains"
new_ids = generate(model, torch.tensor([stoi[c] for c in prompt]), max_new_tokens=10)
print("generated:", repr("".join(chars[i] for i in new_ids)))
print("new tokens", len(new_ids))
