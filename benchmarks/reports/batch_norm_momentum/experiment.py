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


class Conv2dNormActivation(nn.Sequential):
    def __init__(self, in_channels, out_channels, stride, norm_layer):
        super().__init__(
            nn.Conv2d(in_channels, out_channels, stride, stride, bias=False), norm_layer(out_channels), nn.GELU()
        )


class MaxVit(nn.Module):
    def __init__(self, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.99)
        self.stem = nn.Sequential(
            Conv2dNormActivation(3, 16, 4, norm_layer),
            Conv2dNormActivation(16, 32, 2, norm_layer),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(512, 64), nn.BatchNorm1d(64, eps=1e-3, momentum=0.1), nn.Tanh(), nn.Linear(64, 10, bias=False)
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
