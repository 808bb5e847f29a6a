"""Train a small GPT on a text, character by character.

    python char_gpt.py --data data --out out --seed 1337
    python char_gpt.py --data data --out out --resume
    python char_gpt.py --data data --out out --evaluate
"""

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

import track


@dataclass
class Config:
    block_size: int = 32
    vocab_size: int = 32
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.05

    batch_size: int = 8
    accumulate: int = 2
    steps: int = 180
    warmup: int = 20
    lr: float = 1e-2
    min_lr: float = 1e-3
    weight_decay: float = 0.1
    clip: float = 1.5
    eval_every: int = 60


# --- data -----------------------------------------------------------------------------------------------------------


class CharDataset(Dataset):
    """Windows of a text: (characters, the character that follows each of them)."""

    def __init__(self, text, chars, block_size):
        stoi = {c: i for i, c in enumerate(chars)}
        self.data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
        self.block_size = block_size

    def __len__(self):
        return (len(self.data) - 1) // self.block_size

    def __getitem__(self, i):
        chunk = self.data[i * self.block_size : (i + 1) * self.block_size + 1]
        return chunk[:-1], chunk[1:]


class EpochSampler(Sampler):
    """Shuffles by (seed, epoch), and can start in the middle of an epoch."""

    def __init__(self, size, seed):
        self.size, self.seed, self.epoch, self.start = size, seed, 0, 0

    def __len__(self):
        return self.size - self.start

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        yield from torch.randperm(self.size, generator=g).tolist()[self.start :]


def endless(loader, sampler):
    """Yield batches for ever; the sampler always knows which one comes next."""
    while True:
        for batch in loader:
            sampler.start += len(batch[0])
            yield batch
        sampler.epoch, sampler.start = sampler.epoch + 1, 0


# --- model ----------------------------------------------------------------------------------------------------------


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head, self.dropout = config.n_head, config.dropout
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
            nn.Dropout(config.dropout),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.apply(self._init_weights)
        for name, p in self.named_parameters():
            if name.endswith(("proj.weight", "mlp.2.weight")):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * config.n_layer))
        self.wte.weight = self.lm_head.weight

    @staticmethod
    def _init_weights(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        T = idx.size(1)
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(T, device=idx.device)))
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        return logits, loss

    def configure_optimizer(self, lr, weight_decay):
        decay = [p for p in self.parameters() if p.dim() >= 2]
        rest = [p for p in self.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99), fused=True)

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, generator=None):
        """Append max_new_tokens characters to texts (B, T). With temperature 0, take the likeliest one each time."""
        was_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.config.block_size :])
            logits = logits[:, -1, :].float()
            if temperature == 0:
                following = logits.argmax(dim=-1, keepdim=True)
            else:
                probs = F.softmax(logits / temperature, dim=-1)
                following = torch.multinomial(probs, 1, generator=generator)
            idx = torch.cat([idx, following], dim=1)
        self.train(was_training)
        return idx


# --- training -------------------------------------------------------------------------------------------------------


def learning_rate(step, c):
    """Linear warm-up, then a cosine down to min_lr."""
    if step < c.warmup:
        return c.lr * (step + 1) / c.warmup
    t = (step - c.warmup) / max(1, c.steps - c.warmup)
    return c.min_lr + 0.5 * (1 + math.cos(math.pi * t)) * (c.lr - c.min_lr)


@torch.no_grad()
def evaluate(model, loader):
    """Return mean loss and accuracy over all characters of a loader."""
    model.eval()
    loss = right = count = 0
    for x, y in loader:
        logits, batch_loss = model(x, y)
        loss += batch_loss.item() * y.numel()
        right += (logits.argmax(dim=-1) == y).sum().item()
        count += y.numel()
    model.train()
    return {"val_loss": loss / count, "val_accuracy": right / count}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = (args.data / "train.txt").read_text(encoding="utf-8")
    chars = sorted(set(text))
    config = Config(vocab_size=len(chars))
    train_set = CharDataset(text, chars, config.block_size)
    val_set = CharDataset((args.data / "val.txt").read_text(encoding="utf-8"), chars, config.block_size)
    sampler = EpochSampler(len(train_set), args.seed)
    # A generator of its own: an iterator draws a seed when it starts, and must not shift the draws of dropout.
    order = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(train_set, config.batch_size, sampler=sampler, drop_last=True, generator=order)
    val_loader = DataLoader(val_set, batch_size=32)

    model = GPT(config)
    optimizer = model.configure_optimizer(config.lr, config.weight_decay)
    step = 0
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(ckpt["model"])
    if args.evaluate:
        track.log(evaluate(model, val_loader))
        return
    if args.resume:
        optimizer.load_state_dict(ckpt["optimizer"])
        sampler.epoch, sampler.start = ckpt["sampler"]
        torch.set_rng_state(ckpt["rng"])
        step = ckpt["step"]

    model.train()
    batches = endless(train_loader, sampler)
    while step < config.steps:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config)
        for _ in range(config.accumulate):
            x, y = next(batches)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                _, loss = model(x, y)
            (loss / config.accumulate).backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1

        if step % config.eval_every == 0 or step == config.steps:
            track.log(evaluate(model, val_loader), step=step)
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "sampler": [sampler.epoch, sampler.start],
                "rng": torch.get_rng_state(),
                "step": step,
                "config": asdict(config),
                "chars": chars,
            }
            args.out.mkdir(parents=True, exist_ok=True)
            torch.save(state, args.out / "ckpt.pt")

    prompt = torch.tensor([[chars.index(c) for c in "the "]])
    sample = model.generate(prompt, 120, temperature=0.8, generator=torch.Generator().manual_seed(args.seed))
    print("".join(chars[i] for i in sample[0].tolist()))


if __name__ == "__main__":
    main()
