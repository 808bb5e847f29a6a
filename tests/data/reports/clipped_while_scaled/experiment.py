"""Mixed precision with a gradient scaler and gradient clipping, on digits."""

import torch
import torch.nn as nn

EPOCHS = 5
BATCH_SIZE = 64
AMP = True
gradient_clipping = 1.0

grad_scaler = torch.amp.GradScaler("cpu")


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class DoubleLinear(nn.Module):
    """(linear => [LN] => ReLU) * 2"""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.ReLU(inplace=True),
            nn.Linear(outputs, outputs), nn.LayerNorm(outputs), nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.layers(x)


def build_model():
    return nn.Sequential(nn.Flatten(), DoubleLinear(784, 64), nn.Linear(64, 10))


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


criterion = nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return criterion(outputs.float(), labels)


def train_step(model, optimizer, inputs, labels):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=AMP):
        pred = model(inputs)
        loss = compute_loss(pred, labels)
    optimizer.zero_grad(set_to_none=True)
    grad_scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
    grad_scaler.step(optimizer)
    grad_scaler.update()
    return loss


@torch.inference_mode()
def evaluate(model, inputs, labels):
    model.eval()
    pred = model(inputs)
    return {"val_loss": compute_loss(pred, labels).item(), "val_accuracy": (pred.argmax(dim=1) == labels).float().mean().item()}
