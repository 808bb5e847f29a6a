import math

import numpy as np
import torch
import torch.nn as nn

seed = 42
np.random.seed(seed)
torch.manual_seed(seed)
N_VOCAB, N_CTX, N_EMBD = 16, 20, 32


class Attention(nn.Module):
    def __init__(self, nx, n_head=4):
        super().__init__()
        self.c_attn, self.c_proj, self.n_head = nn.Linear(nx, 3 * nx), nn.Linear(nx, nx), n_head
        self.register_buffer("bias", torch.tril(torch.ones(N_CTX, N_CTX)).view(1, 1, N_CTX, N_CTX))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.n_head, -1).transpose(1, 2) for z in self.c_attn(x).split(c, 2))
        w = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        w = w.masked_fill(self.bias[:, :, :t, :t] == 0, -1e4)
        return self.c_proj((w.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class GPT2LMHeadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(N_VOCAB, N_EMBD), nn.Embedding(N_CTX, N_EMBD)
        self.ln_1, self.attn = nn.LayerNorm(N_EMBD), Attention(N_EMBD)
        self.ln_2 = nn.LayerNorm(N_EMBD)
        self.mlp = nn.Sequential(nn.Linear(N_EMBD, 64), nn.GELU(), nn.Linear(64, N_EMBD))
        self.ln_f, self.lm_head = nn.LayerNorm(N_EMBD), nn.Linear(N_EMBD, N_VOCAB, bias=False)

    def forward(self, input_ids, lm_labels=None):
        h = self.wte(input_ids) + self.wpe(torch.arange(input_ids.size(1)))
        h = h + self.attn(self.ln_1(h))
        h = h + self.mlp(self.ln_2(h))
        lm_logits = self.lm_head(self.ln_f(h))
        if lm_labels is not None:
            loss_fct = nn.CrossEntropyLoss(ignore_index=-1)
            return loss_fct(lm_logits.view(-1, lm_logits.size(-1)), lm_labels.view(-1))
        return lm_logits


def melodies(n):
    start, step = np.random.randint(0, N_VOCAB, (n, 1)), np.random.choice([1, 3, 5], (n, 1))
    return torch.from_numpy((start + step * np.arange(N_CTX)) % N_VOCAB)


def continue_sequence(model, prompt, n):
    ids = prompt
    with torch.no_grad():
        for _ in range(n):
            ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], 1)
    return ids[:, prompt.size(1) :]


train_data, held_out = melodies(800), melodies(100)
model = GPT2LMHeadModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for batch in train_data[torch.randperm(len(train_data))].split(32):
        loss = model(batch, lm_labels=batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 25:.4f}")
model.eval()
answer = continue_sequence(model, held_out[:, :6], 14)
print(f"share of notes continued rightly: {(answer == held_out[:, 6:]).float().mean().item():.4f}")
