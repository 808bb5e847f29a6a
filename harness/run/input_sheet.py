"""The input sheet, `inputs.json`: the first images of a run with their labels, as the network received them."""

import base64
from collections.abc import Sequence
from typing import Any

from torch import Tensor

MOST_IMAGES = 24


def input_sheet(inputs: Tensor, labels: Tensor, class_names: Sequence[str]) -> dict[str, Any]:
    """Return the first images of a batch (B, C, H, W) as bytes, with their labels in words.

    The pixels are scaled to 0..255 over the whole sheet. `labels` is null for a regression; `pixels` is empty if the
    inputs are not images.
    """
    names = None
    if labels.dim() == 1 and not labels.is_floating_point():
        names = [
            class_names[i] if 0 <= i < len(class_names) else str(i) for i in labels[:MOST_IMAGES].tolist()
        ]
    images = inputs[:MOST_IMAGES].detach().double().cpu()
    if images.dim() != 4 or images.shape[1] not in (1, 3):
        return {"shape": list(images.shape), "pixels": "", "labels": names}
    images = images.nan_to_num(0.0, 0.0, 0.0)
    low, high = images.min(), images.max()
    pixels = ((images - low) / (high - low).clamp(min=1e-12) * 255).round().byte()
    encoded = base64.b64encode(pixels.numpy().tobytes()).decode("ascii")
    return {"shape": list(images.shape), "pixels": encoded, "labels": names}
