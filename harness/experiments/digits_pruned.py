"""Nine tenths of a trained network's weights are pruned. Only the others are trained further, and used to predict."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.data.pretrained import pretrained_weights

EPOCHS = 4
BATCH_SIZE = 64
DENSITY = 0.1


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels)."""
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


class PrunedLinear(nn.Linear):
    """A linear layer with a mask that keeps the largest weights. The others are zero."""

    def __init__(self, weight, bias):
        super().__init__(weight.shape[1], weight.shape[0])
        kept = int(DENSITY * weight.numel())
        smallest = weight.abs().flatten().kthvalue(weight.numel() - kept + 1).values
        self.register_buffer("mask", weight.abs() >= smallest)
        with torch.no_grad():
            self.weight.copy_(weight * self.mask)
            self.bias.copy_(bias)

    def forward(self, x):
        """Return the outputs (B, out) for x (B, in)."""
        return F.linear(x, self.weight * self.mask, self.bias)

    def stored_weight(self):
        """Return the weights (out, in) that are stored: those that the mask keeps."""
        return self.weight * self.mask


def build_model():
    """Return the pruned network: images (B, 1, 28, 28) to logits (B, 10)."""
    trained = pretrained_weights("base")
    return nn.Sequential(
        nn.Flatten(),
        PrunedLinear(trained["0.weight"], trained["0.bias"]),
        nn.ReLU(),
        PrunedLinear(trained["1.weight"], trained["1.bias"]),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.002, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a schedule, stepped once a batch, that lowers the learning rate to zero along a half cosine."""
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps)


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
    """Return the digits (B,) that the stored weights predict for grey images, uint8 (B, 1, 28, 28)."""
    x = images.float().flatten(1) / 255
    for layer in (model[1], model[3]):
        x = F.linear(x, layer.stored_weight(), layer.bias)
        x = x.relu() if layer is model[1] else x
    return x.argmax(dim=1)
