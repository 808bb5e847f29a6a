"""The broken experiment of `huge_lr`, written without the harness, with which `bench` compares other times.

The script has the same data, network, training loop and kernels, but records nothing and imports nothing from the
harness. The environment variables for portable numerics must be set before Python starts; `bench` sets them.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

DIGITS = Path(__file__).parent.parent / "harness" / "data" / "embedded" / "digits.npz"
SEED = 42
EPOCHS = 5
BATCH_SIZE = 64
LEARNING_RATE = 10.0  # the break


def use_portable_kernels() -> None:
    """Choose the kernels that give the same bytes on every processor."""
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment,unused-ignore]
    torch.backends.nnpack.set_flags(False)  # type: ignore[no-untyped-call,unused-ignore]


def load_split(name: str) -> tuple[Tensor, Tensor]:
    """Return the images (N, 1, 28, 28) in [0, 1] and the labels (N,) of one split."""
    with np.load(DIGITS) as arrays:
        images, labels = arrays[f"{name}_images"], arrays[f"{name}_labels"]
    return torch.from_numpy(images).float() / 255, torch.from_numpy(labels)


@torch.no_grad()
def evaluate(model: nn.Module, inputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return the loss and the accuracy on a whole split."""
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return F.cross_entropy(outputs, labels).item(), accuracy.item()


def train() -> tuple[nn.Module, float, float]:
    """Train the network; return it with the last validation loss and accuracy."""
    use_portable_kernels()
    torch.manual_seed(SEED)
    order = torch.Generator().manual_seed(SEED)
    inputs, labels = load_split("train")
    validation = load_split("validation")
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    val_loss = val_accuracy = float("nan")
    for epoch in range(EPOCHS):
        model.train()
        shuffled = torch.randperm(len(inputs), generator=order)
        for start in range(0, len(inputs) - BATCH_SIZE + 1, BATCH_SIZE):
            batch = shuffled[start : start + BATCH_SIZE]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs[batch]), labels[batch])
            loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
            optimizer.step()
        val_loss, val_accuracy = evaluate(model, *validation)
        print(f"epoch {epoch}: training loss {loss.item()}, validation {val_loss}, accuracy {val_accuracy}")
    return model, val_loss, val_accuracy


if __name__ == "__main__":
    train()
