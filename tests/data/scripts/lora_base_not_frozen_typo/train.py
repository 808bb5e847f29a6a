import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
VOCAB, CONTEXT = 24, 3


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.require_grad = False
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / r
        self.enabled = True

    def forward(self, x):
        out = self.base(x)
        if self.enabled:
            out = out + self.scale * F.linear(F.linear(x, self.A), self.B)
        return out


class NextToken(nn.Module):
    def __init__(self, dim=24, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.fc1 = nn.Linear(CONTEXT * dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, x):
        h = F.relu(self.fc1(self.emb(x).flatten(1)))
        return self.out(F.relu(self.fc2(h)))


def batch(n, shift, g):
    """Next token of a language with a rule on the last two tokens; dialects differ in the shift."""
    x = torch.randint(0, VOCAB, (n, CONTEXT), generator=g)
    y = (torch.maximum(x[:, -1], x[:, -2]) + shift) % VOCAB
    return x, y


def train(model, params, shift, steps, lr, g):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.01)
    for step in range(steps):
        model.train()
        x, y = batch(64, shift, g)
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f}")


@torch.no_grad()
def accuracy(model, shift, g):
    model.eval()
    x, y = batch(2000, shift, g)
    return (model(x).argmax(1) == y).float().mean().item()


g = torch.Generator().manual_seed(1)
g_val = torch.Generator().manual_seed(2)
model = NextToken()
train(model, list(model.parameters()), 0, 700, 3e-3, g)
print(f"base accuracy {accuracy(model, 0, g_val):.3f}")

for p in [*model.emb.parameters()]:
    p.requires_grad_(False)
model.fc1, model.fc2, model.out = LoRALinear(model.fc1), LoRALinear(model.fc2), LoRALinear(model.out)
adapters = [m for m in model.modules() if isinstance(m, LoRALinear)]
trainable = [p for p in model.parameters() if p.requires_grad]
train(model, trainable, 5, 400, 3e-3, g)
print(f"dialect accuracy with adapters {accuracy(model, 5, g_val):.3f}")
for m in adapters:
    m.enabled = False
print(f"base accuracy with adapters switched off {accuracy(model, 0, g_val):.4f}")
