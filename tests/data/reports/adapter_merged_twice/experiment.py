"""Low-rank adapters on a frozen base network; for export they are merged into the base."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 8
BATCH_SIZE = 64
FROZEN = ("fc1.base_layer", "fc2.base_layer", "out_proj.base_layer")


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class LoraLinear(nn.Module):
    def __init__(self, base_layer, r=8, lora_alpha=16):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.randn(r, base_layer.in_features) / base_layer.in_features**0.5)
        self.lora_B = nn.Parameter(torch.zeros(base_layer.out_features, r))
        self.scaling = lora_alpha / r
        self.merged = False

    def delta(self):
        return self.scaling * self.lora_B @ self.lora_A

    def merge(self):
        if not self.merged:
            self.base_layer.weight.data += self.delta()
        self.merged = True

    def forward(self, x):
        result = self.base_layer(x)
        return result if self.merged else result + F.linear(x, self.delta())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = LoraLinear(nn.Linear(784, 64))
        self.fc2 = LoraLinear(nn.Linear(64, 64))
        self.out_proj = LoraLinear(nn.Linear(64, 10))

    def forward(self, x):
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.out_proj(torch.relu(self.fc2(x)))


def merge_for_export(model):
    merged = copy.deepcopy(model)
    for layer in merged.children():
        layer.base_layer.weight.data += layer.delta()
        layer.merge()
    return merged


def build_model():
    return Net()


def build_optimizer(model):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    outputs = model.eval()(inputs)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(1) == labels).float().mean().item(),
    }


@torch.no_grad()
def predict(model, images):
    return merge_for_export(model).eval()(images.float() / 255).argmax(1)
