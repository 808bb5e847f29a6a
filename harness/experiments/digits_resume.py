"""A network learns to read digits in a run that is interrupted half-way and continues from a checkpoint."""

import torch
import torch.nn.functional as F
from torch import nn

from harness.run.schedules import warmup_cosine

EPOCHS = 4
BATCH_SIZE = 64
INTERRUPTED_AT = 40


def load_data(data):
    """Return the training and the validation split, each as (images in [0, 1], labels)."""
    train = (data.train.images.float() / 255, data.train.labels)
    validation = (data.validation.images.float() / 255, data.validation.labels)
    return train, validation


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10)."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 64),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(64, 10),
    )


def build_optimizer(model):
    """Return the optimizer over all parameters of the model."""
    return torch.optim.Adam(model.parameters(), lr=0.003, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch: warm-up, then cosine to zero."""
    return warmup_cosine(optimizer, warmup_steps=total_steps // 10, total_steps=total_steps)


def save_checkpoint(model, optimizer, scheduler):
    """Return the state that the run needs to continue in another process."""
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "random": torch.get_rng_state(),
    }


def load_checkpoint(state, model, optimizer, scheduler):
    """Restore the state that `save_checkpoint` returned."""
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["random"])


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
