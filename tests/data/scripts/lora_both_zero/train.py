"""LoRA adaptation of a pretrained feed-forward classifier to a shifted domain."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Args:
    dim: int = 32
    classes: int = 6
    rank: int = 8
    alpha: float = 16.0
    pre_epochs: int = 6
    ft_epochs: int = 10
    lr: float = 5e-3
    seed: int = 0


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.zeros(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + (x @ self.lora_a.t() @ self.lora_b.t()) * self.scale


def make_domain(args, centers, rotation, n, gen):
    y = torch.randint(0, args.classes, (n,), generator=gen)
    x = centers[y] + 0.8 * torch.randn(n, args.dim, generator=gen)
    return TensorDataset(x @ rotation, y)


def build(args):
    return nn.Sequential(
        nn.Linear(args.dim, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, args.classes)
    )


def attach_lora(model, args):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child, args.rank, args.alpha))
        else:
            attach_lora(child, args)
    return model


def fit(model, params, data, epochs, lr, tag):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"{tag} epoch {epoch} loss {loss.item():.4f}")


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    x, y = data.tensors
    return (model(x).argmax(1) == y).float().mean().item()


def main(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    centers = torch.randn(args.classes, args.dim, generator=gen) * 0.6
    eye = torch.eye(args.dim)
    turned, _ = torch.linalg.qr(eye + 0.35 * torch.randn(args.dim, args.dim, generator=gen))
    source = make_domain(args, centers, eye, 1200, gen)
    target = make_domain(args, centers, turned, 600, gen)
    target_val = make_domain(args, centers, turned, 400, gen)

    model = build(args)
    fit(model, model.parameters(), source, args.pre_epochs, 1e-3, "pretrain")
    print(f"target accuracy before adaptation {accuracy(model, target_val):.3f}")
    attach_lora(model, args)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"trainable parameters: {sum(p.numel() for p in trainable)}")
    fit(model, trainable, target, args.ft_epochs, args.lr, "lora")
    print(f"target accuracy {accuracy(model, target_val):.3f}")


main(Args())
