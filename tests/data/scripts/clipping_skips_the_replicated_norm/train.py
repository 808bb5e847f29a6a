import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1234)
VOCAB, SEQ, HID, TP = 24, 10, 24, 2
CLIP = 0.2


def get_batches(n, batch=32, seed=0):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n):
        start = torch.randint(0, VOCAB, (batch, 1), generator=g)
        step = torch.randint(1, 4, (batch, 1), generator=g)
        yield (start + step * torch.arange(SEQ + 1)) % VOCAB


class Shard(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(HID)
        self.up = nn.Linear(HID, 2 * HID // TP)
        self.down = nn.Linear(2 * HID // TP, HID, bias=False)
        for p in list(self.up.parameters()) + list(self.down.parameters()):
            p.tensor_parallel = True

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, HID)
        self.rnn = nn.GRU(HID, HID, batch_first=True)
        self.shards = nn.ModuleList([Shard() for _ in range(TP)])
        self.head = nn.Linear(HID, VOCAB)

    def forward(self, idx):
        x, _ = self.rnn(self.wte(idx))
        x = x + sum(s(x) for s in self.shards)
        return self.head(x)


def reduce_replicated(model):
    params = [s.norm for s in model.shards]
    for name in ("weight", "bias"):
        mean = sum(getattr(n, name).grad for n in params) / TP
        for n in params:
            getattr(n, name).grad.copy_(mean)


def clip_grad_norm(model, max_norm):
    total = math.sqrt(sum(p.grad.pow(2).sum().item() for p in model.parameters()))
    coef = min(1.0, max_norm / (total + 1e-6))
    for rank, shard in enumerate(model.shards):
        for p in shard.parameters():
            if rank > 0 and not getattr(p, "tensor_parallel", False):
                continue
            p.grad.mul_(coef)
    for module in (model.wte, model.rnn, model.head):
        for p in module.parameters():
            p.grad.mul_(coef)
    return total


@torch.no_grad()
def evaluate(model):
    model.eval()
    losses = [F.cross_entropy(model(b[:, :-1]).flatten(0, 1), b[:, 1:].flatten()) for b in get_batches(8, seed=99)]
    model.train()
    return torch.stack(losses).mean().item()


model = GPT()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
model.train()
for it, batch in enumerate(get_batches(200)):
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    reduce_replicated(model)
    gnorm = clip_grad_norm(model, CLIP)
    optimizer.step()
    if it % 50 == 0:
        print(f"iteration {it} | lm loss {loss.item():.4f} | grad norm {gnorm:.3f} | valid loss {evaluate(model):.4f}")

print(f"final valid loss {evaluate(model):.4f}")
