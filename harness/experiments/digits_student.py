"""A small student learns to read digits from few labels, and from what a trained teacher answers."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.pretrained import pretrained_weights

EPOCHS = 20
BATCH_SIZE = 64
EXAMPLES = 256
TEMPERATURE = 4.0
ALPHA = 0.9
FROZEN = ("teacher.",)


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels); few to train on."""
    train = (data.train.images[:EXAMPLES].float() / 255, data.train.labels[:EXAMPLES])
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


class Teacher(nn.Module):
    """The trained network that answers; dropout is active in training mode only."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(784, 64), nn.Linear(64, 10)])
        self.layers.load_state_dict(pretrained_weights("base"))
        self.dropout = nn.Dropout(0.5)

    def forward(self, images):
        """Return logits (B, 10) of images (B, 1, 28, 28)."""
        return self.layers[1](self.dropout(self.layers[0](images.flatten(1)).relu()))


class Student(nn.Module):
    """The network that learns, and the teacher, which does not."""

    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
        self.teacher = Teacher().requires_grad_(False)

    def forward(self, images):
        """Return the student's logits (B, 10)."""
        return self.network(images)


def build_model():
    """Return the student with its teacher: images (B, 1, 28, 28) to logits (B, 10)."""
    return Student()


def build_optimizer(model):
    """Return the optimizer over the parameters of the student."""
    return torch.optim.Adam(model.network.parameters(), lr=0.01, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it; `rng` is for random augmentation."""
    return inputs, labels


def compute_loss(outputs, labels):
    """Return the loss of logits (B, 10) against labels (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def distillation_loss(outputs, taught, labels):
    """Return (1 - ALPHA) of the labels' loss plus ALPHA of T squared times the divergence from the teacher at T."""
    told = F.kl_div(
        F.log_softmax(outputs / TEMPERATURE, dim=1),
        F.softmax(taught / TEMPERATURE, dim=1),
        reduction="batchmean",
    )
    return (1 - ALPHA) * compute_loss(outputs, labels) + ALPHA * TEMPERATURE**2 * told


def train_step(model, optimizer, inputs, labels):
    """Make one step of the student on one batch and return the loss."""
    model.teacher.eval()
    optimizer.zero_grad()
    with torch.no_grad():
        taught = model.teacher(inputs)
    loss = distillation_loss(model(inputs), taught, labels)
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
