import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
n_layer, n_head, n_embd, vocab, block = 2, 2, 32, 20, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.c_attn(x).split(n_embd, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd)
        self.c_proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(n_embd), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(n_embd), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block, n_embd)
        self.h = nn.ModuleList([Block() for _ in range(n_layer)])
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab, bias=False)
        self.apply(self._init_weights)

    @torch.no_grad()
    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.normal_(mean=0.0, std=0.02)
            if getattr(module, "bias", None) is not None:
                module.bias.zero_()
        for name, p in module.named_parameters():
            if name.endswith("c_proj.weight"):
                p.normal_(mean=0.0, std=0.02 / math.sqrt(2 * n_layer))

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for blk in self.h:
            x = blk(x)
        return self.lm_head(self.ln_f(x))


def get_batch(n):
    start, step = torch.randint(0, vocab, (n, 1)), torch.randint(1, 5, (n, 1))
    seq = (start + step * torch.arange(block + 1)) % vocab
    return seq[:, :-1], seq[:, 1:]


val_x, val_y = get_batch(256)
model = GPT2()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(200):
    model.train()
    x, y = get_batch(32)
    loss = F.cross_entropy(model(x).view(-1, vocab), y.reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 40 == 39:
        model.eval()
        with torch.no_grad():
            val = F.cross_entropy(model(val_x).view(-1, vocab), val_y.reshape(-1)).item()
        print(f"iter {it + 1}: train {loss.item():.4f} val {val:.4f}")
