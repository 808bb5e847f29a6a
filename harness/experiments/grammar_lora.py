"""Fine-tune a pretrained encoder with LoRA (Hu et al., 2021): is a sentence grammatical?

    python grammar_lora.py --data data --out out --seed 17
    python grammar_lora.py --data data --out out --resume
    python grammar_lora.py --data data --out out --evaluate

vocab.txt and base.npz are the pretrained encoder, which has learned to fill in masked words. It is frozen, so ckpt.pt
has only the weights of adapters and head. merged.pt has the whole network, with the adapters added to its layers.
"""

import argparse
import copy
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

import track

PAD, UNKNOWN = 0, 1


@dataclass
class Config:
    hidden: int = 48
    heads: int = 4
    layers: int = 2
    max_length: int = 24
    dropout: float = 0.0  # of the encoder
    head_dropout: float = 0.1
    classes: int = 2

    r: int = 8
    lora_alpha: int = 16
    lora_dropout: float = 0.0
    targets: tuple = ("q_proj", "k_proj", "v_proj", "out_proj", "mlp.0", "mlp.2")

    epochs: int = 4
    batch_size: int = 32
    lr: float = 3e-3
    warmup_ratio: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0


# --- data -----------------------------------------------------------------------------------------------------------


def read_sentences(path, words):
    """Return the word ids (T,) and the label of each sentence."""
    index, examples = {word: i for i, word in enumerate(words)}, []
    for line in path.read_text(encoding="utf-8").splitlines():
        label, sentence = line.split("\t")
        ids = [index.get(word, UNKNOWN) for word in sentence.split()]
        examples.append((torch.tensor(ids), int(label)))
    return examples


def collate(examples):
    """Return ids (B, T), padded to the longest sentence, and labels (B,)."""
    ids, labels = zip(*examples, strict=True)
    return pad_sequence(ids, batch_first=True, padding_value=PAD), torch.tensor(labels)


# --- model ----------------------------------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        size = config.hidden
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.out_proj = nn.Linear(size, size)

    def forward(self, x, mask):
        B, T, C = x.shape
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out_proj(y.transpose(1, 2).reshape(B, T, C))


class EncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm_1 = nn.LayerNorm(config.hidden)
        self.attn = SelfAttention(config)
        self.norm_2 = nn.LayerNorm(config.hidden)
        self.mlp = nn.Sequential(
            nn.Linear(config.hidden, 2 * config.hidden), nn.GELU(), nn.Linear(2 * config.hidden, config.hidden)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, mask):
        x = x + self.dropout(self.attn(self.norm_1(x), mask))
        return x + self.dropout(self.mlp(self.norm_2(x)))


class Encoder(nn.Module):
    """Turns word ids (B, T) into features (B, T, hidden). The mask (B, T) is True at words and False at padding."""

    def __init__(self, config, words):
        super().__init__()
        self.word = nn.Embedding(words, config.hidden)
        self.position = nn.Embedding(config.max_length, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)

    def forward(self, ids, mask):
        x = self.dropout(self.word(ids) + self.position(torch.arange(ids.size(1), device=ids.device)))
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Classifier(nn.Module):
    def __init__(self, encoder, config):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(
            nn.Linear(config.hidden, config.hidden),
            nn.Tanh(),
            nn.Dropout(config.head_dropout),
            nn.Linear(config.hidden, config.classes),
        )

    def forward(self, ids):
        mask = ids != PAD
        features = self.encoder(ids, mask)
        weights = mask.unsqueeze(2)
        return self.head((features * weights).sum(dim=1) / weights.sum(dim=1))


def load_encoder(folder, config):
    """Return the frozen pretrained encoder, and its words in the order of their ids."""
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    encoder = Encoder(config, len(words))
    with np.load(folder / "base.npz") as weights:
        encoder.load_state_dict({name: torch.from_numpy(weights[name]).float() for name in weights.files})
    return encoder.requires_grad_(False), words


# --- LoRA -----------------------------------------------------------------------------------------------------------


class LoRALinear(nn.Module):
    """A frozen linear layer and a low-rank update of its weight: W + alpha / r * B A. B starts at zero."""

    def __init__(self, base_layer, r, alpha, dropout):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = nn.Linear(base_layer.in_features, r, bias=False)
        self.lora_B = nn.Linear(r, base_layer.out_features, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.scaling = alpha / r
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling

    @torch.no_grad()
    def merge(self):
        """Add the update to the weight of the base layer, and return that layer."""
        self.base_layer.weight += (self.lora_B.weight @ self.lora_A.weight) * self.scaling
        return self.base_layer


def set_module(model, name, module):
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, module)


def add_lora(model, config):
    """Put an adapter around each linear layer whose name ends with one of the targets."""
    for name, module in list(model.named_modules()):
        if name.endswith(config.targets):
            set_module(model, name, LoRALinear(module, config.r, config.lora_alpha, config.lora_dropout))
    return model


def merge_and_unload(model):
    """Return a copy of the network without adapters, which computes the same."""
    model = copy.deepcopy(model)
    for name, module in list(model.named_modules()):
        if isinstance(module, LoRALinear):
            set_module(model, name, module.merge())
    return model


def trained_state(model):
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name in trained}


def load_trained(model, state):
    missing = trained_state(model).keys() - state.keys()
    _, unexpected = model.load_state_dict(state, strict=False)
    if missing or unexpected:
        raise KeyError(f"missing: {sorted(missing)}, unexpected: {unexpected}")


# --- training -------------------------------------------------------------------------------------------------------


def learning_rate(step, warmup, steps):
    """Return the factor of the learning rate: a linear warm-up, then a linear decay to 0."""
    return (step + 1) / warmup if step < warmup else max(0.0, (steps - step) / (steps - warmup))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = correct = count = 0
    for ids, labels in loader:
        logits = model(ids)
        loss += F.cross_entropy(logits, labels, reduction="sum").item()
        correct += (logits.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return {"val_loss": loss / count, "val_accuracy": correct / count}


def figures_of(model, loader):
    """Return the figures of the network, and the accuracy after its adapters are merged."""
    merged = evaluate(merge_and_unload(model), loader)["val_accuracy"]
    return {**evaluate(model, loader), "val_accuracy_merged": merged}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    config = Config()

    torch.manual_seed(args.seed)
    encoder, words = load_encoder(args.data, config)
    model = add_lora(Classifier(encoder, config), config)
    val_loader = DataLoader(read_sentences(args.data / "val.tsv", words), batch_size=128, collate_fn=collate)
    if args.resume or args.evaluate:
        ckpt = torch.load(args.out / "ckpt.pt", weights_only=True)
        load_trained(model, ckpt["model"])
    if args.evaluate:
        track.log(figures_of(model, val_loader))
        return

    order = torch.Generator().manual_seed(args.seed)
    train_set = read_sentences(args.data / "train.tsv", words)
    options = {"shuffle": True, "drop_last": True, "collate_fn": collate, "generator": order}
    train_loader = DataLoader(train_set, config.batch_size, **options)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=config.lr, weight_decay=config.weight_decay, fused=True)
    steps = config.epochs * len(train_loader)
    warmup = int(config.warmup_ratio * steps)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step, warmup, steps))
    if args.resume:
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        order.set_state(ckpt["order"])
        torch.set_rng_state(ckpt["rng"])

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(ckpt["epoch"] if args.resume else 0, config.epochs):
        model.train()
        for ids, labels in train_loader:
            loss = F.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trainable, config.clip)
            optimizer.step()
            scheduler.step()

        track.log(figures_of(model, val_loader), step=epoch + 1)
        state = {
            "model": trained_state(model),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
            "rng": torch.get_rng_state(),
            "epoch": epoch + 1,
        }
        torch.save(state, args.out / "ckpt.pt")

    torch.save(merge_and_unload(model).state_dict(), args.out / "merged.pt")


if __name__ == "__main__":
    main()
