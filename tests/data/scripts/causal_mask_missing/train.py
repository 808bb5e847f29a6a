"""Tiny character level GPT, after nanoGPT."""
import math
from dataclasses import dataclass
import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
batch_size = 24
block_size = 24
max_iters = 350
eval_interval = 70
eval_iters = 5
learning_rate = 3e-3
warmup = 20
grad_clip = 1.0
torch.manual_seed(1337)
# -----------------------------------------------------------------------------


@dataclass
class GPTConfig:
    vocab_size: int = 0
    block_size: int = block_size
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = SelfAttention(config)
        self.mlp = nn.Sequential(nn.Linear(config.n_embd, 4 * config.n_embd), nn.GELU(),
                                 nn.Linear(4 * config.n_embd, config.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.block_size = config.block_size
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.Sequential(*[Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.lm_head(self.ln_f(self.h(x)))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            logits, _ = self(idx[:, -self.block_size:])
            idx = torch.cat([idx, logits[:, -1].argmax(-1, keepdim=True)], 1)
        return idx


g = torch.Generator().manual_seed(5)
words = ["".join(chr(97 + int(c)) for c in torch.randint(0, 26, (int(n),), generator=g))
         for n in torch.randint(4, 8, (12,), generator=g)]
text = " ".join(words[int(i)] for i in torch.randint(0, len(words), (4000,), generator=g))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
splits = {"train": data[:n], "val": data[n:]}


def get_batch(split):
    d = splits[split]
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    return torch.stack([d[i:i + block_size] for i in ix]), torch.stack([d[i + 1:i + 1 + block_size] for i in ix])


model = GPT(GPTConfig(vocab_size=len(chars)))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.99), weight_decay=0.1)
for it in range(max_iters):
    lr = learning_rate * min((it + 1) / warmup, 0.55 + 0.45 * math.cos(math.pi * it / max_iters))
    for group in optimizer.param_groups:
        group["lr"] = lr
    if it % eval_interval == 0 or it == max_iters - 1:
        model.eval()
        with torch.no_grad():
            val = sum(model(*get_batch("val"))[1].item() for _ in range(eval_iters)) / eval_iters
        print(f"step {it}: val loss {val:.4f}")
        model.train()
    X, Y = get_batch("train")
    _, loss = model(X, Y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()

model.eval()
sample = "".join(itos[int(i)] for i in model.generate(data[n:n + 8].unsqueeze(0), 240)[0, 8:])
print("sample:", sample[:80])
complete = sample.split(" ")[1:-1]
known = sum(w in words for w in complete) / max(len(complete), 1)
print(f"share of generated words that exist: {known:.3f}")
