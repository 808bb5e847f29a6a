import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
VOCAB, LEN, DIM = 16, 10, 48


class FlashAttention2(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv_proj(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        attn = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        return self.out_proj(attn.transpose(1, 2).reshape(b, t, d))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.self_attn = FlashAttention2(dim, heads, dropout)
        self.self_attn_layer_norm = nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.final_layer_norm = nn.LayerNorm(dim)

    def forward(self, x):
        x = x + self.self_attn(self.self_attn_layer_norm(x))
        return x + self.fc2(F.relu(self.fc1(self.final_layer_norm(x))))


class Translator(nn.Module):
    def __init__(self, layers=2, dropout=0.5):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, DIM)
        self.embed_positions = nn.Embedding(LEN, DIM)
        self.layers = nn.ModuleList([EncoderLayer(DIM, 4, dropout) for _ in range(layers)])
        self.lm_head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        x = self.embed_tokens(ids) + self.embed_positions(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


def pairs(n):
    src = torch.randint(0, VOCAB, (n, LEN))
    return src, (src.flip(1) + 3) % VOCAB


test_src, test_tgt = pairs(400)
model = Translator()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(1, 121):
    model.train()
    src, tgt = pairs(48)
    loss = F.cross_entropy(model(src).view(-1, VOCAB), tgt.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 0:
        model.eval()
        with torch.no_grad():
            out = model(test_src)
        acc = (out.argmax(-1) == test_tgt).float().mean().item()
        print(f"step {step} train loss {loss.item():.4f} eval accuracy {acc:.4f}")
