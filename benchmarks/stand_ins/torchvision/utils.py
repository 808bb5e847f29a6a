"""Grids of pictures, and files of them."""

from typing import Any

import torch
from PIL import Image
from torch import Tensor


@torch.no_grad()
def make_grid(
    tensor: Tensor | list[Tensor], nrow: int = 8, padding: int = 2, normalize: bool = False, **unused: Any
) -> Tensor:
    """Return one picture [3, height, width] with all pictures of a batch in rows of `nrow`."""
    pictures = torch.stack(tensor) if isinstance(tensor, list) else tensor
    pictures = pictures.detach().cpu().float()
    pictures = pictures.reshape(-1, *pictures.shape[-3:]) if pictures.dim() > 3 else pictures.unsqueeze(1)
    pictures = pictures.expand(-1, 3, -1, -1) if pictures.shape[1] == 1 else pictures
    if normalize:
        low, high = pictures.min(), pictures.max()
        pictures = (pictures - low) / (high - low).clamp_min(1e-5)
    rows = []
    for at in range(0, len(pictures), nrow):
        row = list(torch.nn.functional.pad(pictures[at : at + nrow], [padding] * 4))
        row += [torch.zeros_like(row[0])] * (min(nrow, len(pictures)) - len(row))
        rows.append(torch.cat(row, dim=2))
    return torch.cat(rows, dim=1)


def save_image(tensor: Tensor | list[Tensor], fp: Any, format: str | None = None, **options: Any) -> None:
    """Write the grid of a batch to a file."""
    grid = make_grid(tensor, **options).mul(255).clamp(0, 255).byte()
    Image.fromarray(grid.permute(1, 2, 0).contiguous().numpy()).save(fp, format=format)
