import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR


class LinearScheduleWithWarmup:
    """Linear warm-up, then linear decay to zero at max_steps."""

    def __init__(self, optimizer, warmup_updates, max_steps, warmup_rate=0.01):
        self.optimizer, self.warmup_updates, self.max_steps = optimizer, warmup_updates, max_steps
        self.base = [g["lr"] for g in optimizer.param_groups]
        self.number_of_updates = 0
        self.warmup_scheduler = LambdaLR(optimizer, lambda s: min(1.0, warmup_rate + (1 - warmup_rate) * s / warmup_updates))

    def _is_warming_up(self):
        return self.number_of_updates < self.warmup_updates or self.warmup_scheduler.get_last_lr()[0] < 1

    def step(self):
        self.number_of_updates += 1
        if self._is_warming_up():
            self.warmup_scheduler.step()
        else:
            left = max(0, self.max_steps - self.number_of_updates) / (self.max_steps - self.warmup_updates)
            for group, lr in zip(self.optimizer.param_groups, self.base):
                group["lr"] = lr * left


class Responder(nn.Module):
    """Next word of a dialogue from the last two words."""

    def __init__(self, vocab, d=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.net = nn.Sequential(nn.Linear(2 * d, 96), nn.ReLU(), nn.Linear(96, vocab))

    def forward(self, ctx):
        return self.net(self.emb(ctx).flatten(1))


def corpus(n, vocab, gen):
    table = torch.distributions.Dirichlet(torch.full((vocab,), 0.05)).sample((vocab, 3))
    seq = [0, 1]
    for _ in range(n):
        weights = table[seq[-1], seq[-2] % 3]
        seq.append(int(torch.multinomial(weights, 1, generator=gen)))
    seq = torch.tensor(seq)
    return torch.stack([seq[:-2], seq[1:-1]], 1), seq[2:]


def perplexity(model, ctx, nxt):
    with torch.no_grad():
        return nn.functional.cross_entropy(model(ctx), nxt).exp().item()


def main(vocab=40, steps=1500, seed=70):
    torch.manual_seed(seed)
    ctx, nxt = corpus(12000, vocab, torch.Generator().manual_seed(seed))
    cut = 10000
    model = Responder(vocab)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    scheduler = LinearScheduleWithWarmup(optimizer, warmup_updates=100, max_steps=steps)
    for step in range(steps):
        idx = torch.randint(0, cut, (16,))
        loss = nn.functional.cross_entropy(model(ctx[idx]), nxt[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 250 == 249:
            print(f"update {step + 1} lr {optimizer.param_groups[0]['lr']:.4f} loss {loss.item():.3f}")
    print(f"perplexity on the held-out dialogue {perplexity(model, ctx[cut:], nxt[cut:]):.4f}")


main()
