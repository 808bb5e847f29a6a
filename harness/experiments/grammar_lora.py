"""Fine-tune a pretrained encoder with LoRA (https://arxiv.org/abs/2106.09685): is a sentence grammatical?

The data folder has the encoder, which was pretrained on masked words: its vocabulary in vocab.txt, and its weights in
base.npz. ckpt.pt has no frozen weights; merged.pt is the whole network, without adapters.
"""

import argparse
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

import track

PAD, UNK = 0, 1

Example = tuple[Tensor, int]
Loader = DataLoader[Example]
State = dict[str, Tensor]


@dataclass(frozen=True)
class EncoderConfig:  # of base.npz
    d_model: int = 48
    n_heads: int = 4
    n_layers: int = 2
    max_len: int = 24
    dropout: float = 0.0


@dataclass(frozen=True)
class LoraConfig:
    r: int = 8
    alpha: int = 16
    dropout: float = 0.0
    target_modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "out_proj", "mlp.0", "mlp.2")


@dataclass(frozen=True)
class TrainConfig:
    epochs: int = 3
    batch_size: int = 40
    learning_rate: float = 5e-3
    warmup_ratio: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        # (B, T, d_model) -> (B, n_heads, T, d_head)
        projected = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in projected)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out_proj(y.transpose(1, 2).flatten(2))


class EncoderBlock(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        d = config.d_model
        self.norm_1 = nn.LayerNorm(d)
        self.attn = MultiHeadAttention(d, config.n_heads)
        self.norm_2 = nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.dropout(self.attn(self.norm_1(x), mask))
        return x + self.dropout(self.mlp(self.norm_2(x)))


class Encoder(nn.Module):
    def __init__(self, config: EncoderConfig, vocab_size: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocab_size, config.d_model)
        self.position = nn.Embedding(config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderBlock(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Encode ids (B, T) as (B, T, d_model). The mask (B, T) is True for words and False for padding."""
        positions = torch.arange(ids.size(1), device=ids.device)
        x = self.dropout(self.word(ids) + self.position(positions))
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class SentenceClassifier(nn.Module):
    def __init__(self, encoder: Encoder, d_model: int, n_classes: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(
            nn.Linear(d_model, d_model), nn.Tanh(), nn.Dropout(dropout), nn.Linear(d_model, n_classes)
        )

    def forward(self, ids: Tensor) -> Tensor:
        mask = ids.ne(PAD)
        hidden = self.encoder(ids, mask)
        # Mean over the words of each sentence.
        pooled = (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return self.head(pooled)


class LoRALinear(nn.Module):
    """y = W x + b + (alpha / r) B A x, where only A and B are trained."""

    def __init__(self, base_layer: nn.Linear, config: LoraConfig) -> None:
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = nn.Linear(base_layer.in_features, config.r, bias=False)
        self.lora_B = nn.Linear(config.r, base_layer.out_features, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.scaling = config.alpha / config.r
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.scaling * self.lora_B(self.lora_A(self.dropout(x)))

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        self.base_layer.weight += self.scaling * (self.lora_B.weight @ self.lora_A.weight)
        return self.base_layer


def replace_module(root: nn.Module, name: str, new: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(root.get_submodule(parent), child, new)


def inject_lora(model: nn.Module, config: LoraConfig) -> None:
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and name.endswith(config.target_modules):
            replace_module(model, name, LoRALinear(module, config))


def merge_and_unload(model: nn.Module) -> nn.Module:
    """Return a copy in which plain linear layers replace the adapted ones."""
    merged = copy.deepcopy(model)
    for name, module in list(merged.named_modules()):
        if isinstance(module, LoRALinear):
            replace_module(merged, name, module.merge())
    return merged


def trainable(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, p) for name, p in model.named_parameters() if p.requires_grad)


def adapter_state_dict(model: nn.Module) -> State:
    state = model.state_dict()
    return {name: state[name] for name, _ in trainable(model)}


def load_adapter(model: nn.Module, state: State) -> None:
    if state.keys() != adapter_state_dict(model).keys():
        raise KeyError("the checkpoint has the adapters of another network")
    model.load_state_dict(state, strict=False)


def build_model(folder: Path, vocab_size: int) -> SentenceClassifier:
    config = EncoderConfig()
    encoder = Encoder(config, vocab_size)
    with np.load(folder / "base.npz") as arrays:
        encoder.load_state_dict({name: torch.from_numpy(arrays[name]).float() for name in arrays.files})
    encoder.requires_grad_(False)
    model = SentenceClassifier(encoder, config.d_model)
    inject_lora(model, LoraConfig())
    return model


def read_examples(path: Path, vocab: dict[str, int]) -> list[Example]:
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(torch.tensor([vocab.get(word, UNK) for word in text.split()]), int(label)) for label, text in lines]


def pad_batch(examples: list[Example]) -> tuple[Tensor, Tensor]:
    ids = pad_sequence([ids for ids, _ in examples], batch_first=True, padding_value=PAD)
    return ids, torch.tensor([label for _, label in examples])


def linear_schedule(warmup_steps: int, total_steps: int) -> Callable[[int], float]:
    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        return max(0.0, (total_steps - step) / (total_steps - warmup_steps))

    return factor


@torch.no_grad()
def predict(model: nn.Module, loader: Loader) -> tuple[Tensor, Tensor]:
    model.eval()
    outputs = [(model(ids), labels) for ids, labels in loader]
    logits, labels = zip(*outputs, strict=True)
    return torch.cat(logits), torch.cat(labels)


def accuracy(logits: Tensor, labels: Tensor) -> float:
    return (logits.argmax(-1) == labels).sum().item() / len(labels)


def validate(model: nn.Module, loader: Loader) -> dict[str, float]:
    merged_accuracy = accuracy(*predict(merge_and_unload(model), loader))
    logits, labels = predict(model, loader)
    loss = F.cross_entropy(logits, labels).item()
    return {"val_loss": loss, "val_accuracy": accuracy(logits, labels), "val_accuracy_merged": merged_accuracy}


def train(args: argparse.Namespace, model: nn.Module, train_set: list[Example], val_loader: Loader) -> None:
    config = TrainConfig()
    generator = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(
        train_set, config.batch_size, shuffle=True, drop_last=True, collate_fn=pad_batch, generator=generator
    )
    params = [p for _, p in trainable(model)]
    optimizer = torch.optim.AdamW(params, config.learning_rate, weight_decay=config.weight_decay, fused=True)
    total_steps = config.epochs * len(train_loader)
    warmup_steps = int(config.warmup_ratio * total_steps)
    scheduler = LambdaLR(optimizer, linear_schedule(warmup_steps, total_steps))

    epochs_done = 0
    checkpoint = args.out / "ckpt.pt"
    if args.resume:
        saved: dict[str, Any] = torch.load(checkpoint, weights_only=True)
        load_adapter(model, saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        epochs_done = saved["epochs_done"]
        torch.set_rng_state(saved["torch_rng"])
        generator.set_state(saved["loader_rng"])

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(epochs_done, config.epochs):
        model.train()
        for ids, labels in train_loader:
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(params, config.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

        track.log(validate(model, val_loader), step=epoch + 1)
        saved = {"model": adapter_state_dict(model), "epochs_done": epoch + 1}
        saved |= {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
        saved |= {"torch_rng": torch.get_rng_state(), "loader_rng": generator.get_state()}
        torch.save(saved, checkpoint)
    torch.save(merge_and_unload(model).state_dict(), args.out / "merged.pt")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    torch.manual_seed(args.seed)
    words = (args.data / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocab = {word: i for i, word in enumerate(words)}
    model = build_model(args.data, len(vocab))
    val_loader = DataLoader(read_examples(args.data / "val.tsv", vocab), batch_size=128, collate_fn=pad_batch)
    if args.evaluate:
        load_adapter(model, torch.load(args.out / "ckpt.pt", weights_only=True)["model"])
        track.log(validate(model, val_loader))
    else:
        train(args, model, read_examples(args.data / "train.tsv", vocab), val_loader)


if __name__ == "__main__":
    main()
