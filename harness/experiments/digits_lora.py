"""A low-rank update adapts a frozen, trained layer to mirrored digits. Predictions use the merged weights."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.data.pretrained import pretrained_weights

EPOCHS = 8
BATCH_SIZE = 64
RANK = 8
ALPHA = 16
FROZEN = ("0.linear.",)


def load_data(data):
    """Return the training and the validation split, each as (flat mirrored images in [0, 1], labels)."""
    train = (data.train.images.flip(3).float().flatten(1) / 255, data.train.labels)
    validation = (data.validation.images.flip(3).float().flatten(1) / 255, data.validation.labels)
    return train, validation


class LoRALinear(nn.Module):
    """A frozen linear layer W plus an update B A of rank RANK, times ALPHA / RANK; B begins at zero."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(RANK, linear.in_features) / RANK)
        self.B = nn.Parameter(torch.zeros(linear.out_features, RANK))

    def forward(self, x):
        """Return the outputs (B, out) of the layer and its update for x (B, in)."""
        return self.linear(x) + F.linear(F.linear(x, self.A), self.B) * (ALPHA / RANK)

    def merged_weight(self):
        """Return one matrix (out, in) that does what the layer and its update do."""
        return self.linear.weight + self.B @ self.A * (ALPHA / RANK)


def build_model():
    """Return the adapted layer with a new head: flat images (B, 784) to logits (B, 10)."""
    layers = nn.ModuleList([nn.Linear(784, 64), nn.Linear(64, 10)])
    layers.load_state_dict(pretrained_weights("base"))
    return nn.Sequential(LoRALinear(layers[0]), nn.ReLU(), nn.Linear(64, 10))


def build_optimizer(model):
    """Return the optimizer over the update and the head."""
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.Adam(learnt, lr=0.003, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it; `rng` is for random augmentation."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the loss of logits (B, 10) against labels (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}


@torch.no_grad()
def predict(model, images):
    """Mirror grey images, uint8 (B, 1, 28, 28), and return the digits (B,) that the merged network predicts."""
    x = images.flip(3).float().flatten(1) / 255
    hidden = F.linear(x, model[0].merged_weight(), model[0].linear.bias).relu()
    return model[2](hidden).argmax(dim=1)
