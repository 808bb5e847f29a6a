"""A small student network learns to read digits from few labels and from the logits of a trained teacher."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.data.pretrained import pretrained_weights

EPOCHS = 20
BATCH_SIZE = 64
EXAMPLES = 256
TEMPERATURE = 4.0
ALPHA = 0.9


class Teacher(nn.Module):
    """The trained network. Its dropout is active only in training mode."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(784, 64), nn.Linear(64, 10)])
        self.layers.load_state_dict(pretrained_weights("base"))
        self.dropout = nn.Dropout(0.5)

    def forward(self, images):
        """Return logits (B, 10) of images (B, 1, 28, 28)."""
        return self.layers[1](self.dropout(self.layers[0](images.flatten(1)).relu()))


@torch.no_grad()
def with_teacher_logits(teacher, images, labels):
    """Return the targets (N, 11) of images: the label, and the teacher's logits."""
    return torch.cat([labels.unsqueeze(1), teacher(images)], dim=1)


def load_data(data):
    """Return both splits as (images in [0, 1], targets (N, 11)). The training split is small."""
    teacher = Teacher().eval()
    train = data.train.images[:EXAMPLES].float() / 255
    validation = data.validation.images.float() / 255
    return (
        (train, with_teacher_logits(teacher, train, data.train.labels[:EXAMPLES])),
        (validation, with_teacher_logits(teacher, validation, data.validation.labels)),
    )


def build_model():
    """Return the student: images (B, 1, 28, 28) to logits (B, 10)."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 32),
        nn.GELU(),
        nn.Linear(32, 10),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.01, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch, or None for a constant rate."""
    return None


def prepare_batch(inputs, targets, rng):
    """Return a training batch as the network is to see it; `rng` is for random augmentation."""
    return inputs, targets


def compute_loss(outputs, targets):
    """Return (1 - ALPHA) * loss of the labels + ALPHA * T^2 * divergence from the teacher at the temperature T."""
    by_label = F.cross_entropy(outputs, targets[:, 0].long())
    by_teacher = F.kl_div(
        F.log_softmax(outputs / TEMPERATURE, dim=1),
        F.softmax(targets[:, 1:] / TEMPERATURE, dim=1),
        reduction="batchmean",
    )
    return (1 - ALPHA) * by_label + ALPHA * TEMPERATURE**2 * by_teacher


def train_step(model, optimizer, inputs, targets):
    """Make one step of the optimizer on one batch and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, targets):
    """Return the loss and the accuracy on the whole validation split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == targets[:, 0]).float().mean()
    return {"val_loss": compute_loss(outputs, targets).item(), "val_accuracy": accuracy.item()}
