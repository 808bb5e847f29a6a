"""Operators that other packages name."""

from torchvision.ops import misc

__all__ = ["misc"]
