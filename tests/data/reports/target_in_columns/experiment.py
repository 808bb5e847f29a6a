"""A tabular model predicts the result of a match from numeric columns."""

import torch
from torch import nn

EPOCHS = 10
BATCH_SIZE = 64


def make_frame(rows=1600):
    g = torch.Generator().manual_seed(21)
    frame = {f"stat_{i}": torch.randn(rows, generator=g) for i in range(7)}
    strength = 1.5 * frame["stat_0"] - frame["stat_3"] * frame["stat_4"] + 0.8 * frame["stat_6"]
    frame["result"] = (strength + 0.5 * torch.randn(rows, generator=g) > 0).float()
    return frame


def load_data(data):
    frame = make_frame()
    target = "result"
    num_cols = [name for name in frame]
    x = torch.stack([frame[name] for name in num_cols], dim=1)
    y = frame[target].unsqueeze(1)
    return (x[:1280], y[:1280]), (x[1280:], y[1280:])


class CategoryEmbeddingModel(nn.Module):
    def __init__(self, layers="64-32"):
        super().__init__()
        self.layers = nn.Sequential()
        for size in layers.split("-"):
            self.layers.append(nn.LazyLinear(int(size)))
            self.layers.append(nn.ReLU())
        self.head = nn.LazyLinear(1)

    def forward(self, x):
        return self.head(self.layers(x))


def build_model():
    model = CategoryEmbeddingModel()
    model(load_data(None)[0][0][:2])
    return model


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=total_steps + 1)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.binary_cross_entropy_with_logits(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    y_hat = model(inputs)
    right = (y_hat > 0).float() == labels
    return {"val_loss": compute_loss(y_hat, labels).item(), "val_accuracy": right.float().mean().item()}
