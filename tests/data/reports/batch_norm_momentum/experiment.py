"""Convolution, batch norm and GELU in small batches on 32x32 colour images."""

from functools import partial

import torch
from torch import nn

EPOCHS = 2
BATCH_SIZE = 8


def load_data(data):
    def split(part):
        return part.images.float() / 127.5 - 1, part.labels

    return split(data.train), split(data.validation)


class MaxVit(nn.Module):
    def __init__(self, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.BatchNorm1d, eps=1e-3, momentum=0.99)
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Conv2d(16, 32, 2, 2), nn.Flatten())
        self.classifier = nn.Sequential(
            norm_layer(512), nn.Linear(512, 64), norm_layer(64), nn.Tanh(), nn.Linear(64, 10, bias=False)
        )

    def forward(self, x):
        return self.classifier(self.stem(x))


def build_model():
    return MaxVit()


def build_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total_steps)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss


@torch.inference_mode()
def evaluate(model, inputs, labels):
    model.eval()
    output = model(inputs)
    acc1 = output.argmax(1).eq(labels).double().mean().item()
    return {"val_loss": compute_loss(output, labels).item(), "val_accuracy": acc1}
