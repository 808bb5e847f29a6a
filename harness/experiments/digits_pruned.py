"""Nine tenths of a trained network's weights are pruned; the others are trained on, and served alone."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.pretrained import pretrained_weights

EPOCHS = 4
BATCH_SIZE = 64
KEPT = 0.1


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels)."""
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


class Pruned(nn.Module):
    """A linear layer of which a mask keeps the largest weights; the others are zero."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        size = linear.weight.detach().abs()
        kept = int(KEPT * size.numel())
        self.register_buffer("mask", size >= size.flatten().kthvalue(size.numel() - kept + 1).values)
        self.prune()

    @torch.no_grad()
    def prune(self):
        """Set the weights to zero that the mask does not keep."""
        self.linear.weight.mul_(self.mask)

    def forward(self, x):
        """Return the outputs (B, out) for x (B, in)."""
        return self.linear(x)

    def served_weight(self):
        """Return the weights (out, in) that are stored: those that the mask keeps."""
        return self.linear.weight * self.mask


def build_model():
    """Return the pruned network: images (B, 1, 28, 28) to logits (B, 10)."""
    layers = nn.ModuleList([nn.Linear(784, 64), nn.Linear(64, 10)])
    layers.load_state_dict(pretrained_weights("base"))
    return nn.Sequential(nn.Flatten(), Pruned(layers[0]), nn.ReLU(), Pruned(layers[1]))


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.002, fused=True)


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
    """Make one step of the optimizer on one batch and return the loss; what was pruned stays zero."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    for layer in (model[1], model[3]):
        layer.prune()
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
    """Return the digits (B,) that the stored weights read in grey images, uint8 (B, 1, 28, 28)."""
    x = images.float().flatten(1) / 255
    for layer in (model[1], model[3]):
        x = F.linear(x, layer.served_weight(), layer.linear.bias)
        x = x.relu() if layer is model[1] else x
    return x.argmax(dim=1)
