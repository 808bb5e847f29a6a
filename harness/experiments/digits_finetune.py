"""A new head learns to read all ten digits. The trunk below it was trained on the digits 0 to 4 and stays frozen."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.data.pretrained import pretrained_weights

EPOCHS = 4
BATCH_SIZE = 64
FROZEN = ("trunk.",)


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels)."""
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


class Classifier(nn.Module):
    """A trained trunk, and a head on top of it."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=5, stride=2),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=5, stride=2),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.trunk.load_state_dict(pretrained_weights("trunk"))
        self.trunk.requires_grad_(False)
        self.head = nn.Sequential(
            nn.Linear(512, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )

    def forward(self, images):
        """Return logits (B, 10) of images (B, 1, 28, 28)."""
        return self.head(self.trunk(images))


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10)."""
    return Classifier()


def build_optimizer(model):
    """Return the optimizer over the parameters of the head."""
    return torch.optim.SGD(model.head.parameters(), lr=0.05, momentum=0.9)


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
    """Make one step of the optimizer on one batch and return the loss. The trunk's batch norms stay unchanged."""
    model.trunk.eval()
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
