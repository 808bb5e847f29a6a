"""Small decoder-only language model over a synthetic grammar."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, BLOCK, DIM, HEADS = 20, 16, 32, 4


def make_text(n, seed):
    g = torch.Generator().manual_seed(seed)
    tokens = torch.zeros(n, dtype=torch.long)
    noise = torch.rand(n, generator=g)
    rand = torch.randint(0, VOCAB, (n,), generator=g)
    tokens[0] = rand[0]
    for i in range(1, n):
        follow = (7 * tokens[i - 1] + 3) % VOCAB
        tokens[i] = follow if noise[i] > 0.15 else rand[i]
    return tokens


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (z.view(b, t, HEADS, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        att = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)
        att = att.softmax(dim=-1)
        return self.proj((att @ v).transpose(1, 2).reshape(b, t, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.att = SelfAttention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.att(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class LanguageModel(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(BLOCK, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.ln = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        for b in self.blocks:
            x = b(x)
        return self.head(self.ln(x))


def get_batch(data, size, gen):
    at = torch.randint(0, len(data) - BLOCK - 1, (size,), generator=gen)
    x = torch.stack([data[i : i + BLOCK] for i in at])
    y = torch.stack([data[i + 1 : i + BLOCK + 1] for i in at])
    return x, y


@torch.no_grad()
def validation_loss(model, data):
    model.eval()
    x, y = get_batch(data, 128, torch.Generator().manual_seed(0))
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    model.train()
    return loss.item()


torch.manual_seed(0)
train_data, val_data = make_text(8000, 1), make_text(2000, 2)
model = LanguageModel()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.95), weight_decay=0.01)
steps, warmup = 300, 30
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: min((s + 1) / warmup, 0.5 * (1 + math.cos(math.pi * min(1.0, s / steps))) + 0.02)
)
gen = torch.Generator().manual_seed(3)
model.train()
for step in range(steps):
    x, y = get_batch(train_data, 32, gen)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 60 == 59:
        print(f"step {step + 1} train {loss.item():.3f} val {validation_loss(model, val_data):.3f}")
print(f"validation loss {validation_loss(model, val_data):.3f}")
