"""Pretrained weights for the experiments on fine-tuning, distillation and compression."""

import torch
from torch import Tensor

from harness.data.datasets import read_archive


def pretrained_weights(name: str) -> dict[str, Tensor]:
    """Return a new copy of the `state_dict` of a pretrained network.

    "base" has two linear layers (784 to 64 to 10) with a ReLU between them. "trunk" has two convolutions with batch
    norm and ReLU, and outputs 512 features; it was trained only on the digits 0 to 4. Both expect images of digits with
    values in [0, 1]. Raises `UserError` for a damaged file, and `KeyError` for an unknown name.
    """
    arrays = {key: array for key, array in read_archive("pretrained").items() if key.startswith(f"{name}.")}
    if not arrays:
        raise KeyError(name)
    weights = {key.removeprefix(f"{name}."): torch.tensor(array) for key, array in arrays.items()}
    return {key: w.to(torch.get_default_dtype()) if w.is_floating_point() else w for key, w in weights.items()}
