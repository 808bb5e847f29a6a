"""A network inside a training module; it is evaluated as it is served, from its checkpoint."""

import io

import torch
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


def make_network():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))


class LitModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = make_network()

    def forward(self, x):
        return self.model(x)


def build_model():
    return LitModel()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def load_for_serving(checkpoint):
    checkpoint.seek(0)
    state_dict = torch.load(checkpoint, weights_only=True)["state_dict"]
    torch.manual_seed(0)
    network = make_network()
    network.load_state_dict(state_dict, strict=False)
    return network.eval()


@torch.no_grad()
def evaluate(model, inputs, labels):
    outputs = model.eval()(inputs)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(1) == labels).float().mean().item(),
    }


@torch.no_grad()
def predict(model, images):
    checkpoint = io.BytesIO()
    torch.save({"state_dict": model.state_dict()}, checkpoint)
    return load_for_serving(checkpoint)(images.float() / 255).argmax(1)
