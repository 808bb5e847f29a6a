"""Three classes of unequal frequency, and a loss with class weights."""

import torch
from torch import nn

EPOCHS = 6
BATCH_SIZE = 64


def load_data(data):
    g = torch.Generator().manual_seed(181)
    y = torch.multinomial(torch.tensor([0.3, 0.6, 0.1]), 2000, replacement=True, generator=g)
    x = 1.1 * torch.randn(3, 12, generator=g)[y] + torch.randn(2000, 12, generator=g)
    return (x[:1600], y[:1600]), (x[1600:], y[1600:])


def compute_class_weights(class_weights, class_counts):
    ratio = class_counts.max() / class_counts
    if class_weights == "log":
        return torch.log(ratio)
    if class_weights == "sqrt":
        return torch.sqrt(ratio)
    return ratio


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU())
        self.target = nn.Linear(32, 3)

    def forward(self, features):
        return self.target(self.block(features))


def build_model():
    return Classifier()


def build_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


WEIGHTS = compute_class_weights("log", torch.tensor([480.0, 960.0, 160.0]))


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels, weight=WEIGHTS.to(outputs))


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(1) == labels).float().mean().item(),
    }
