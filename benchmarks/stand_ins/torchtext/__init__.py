"""The part of torchtext that the public programs use, on made-up texts."""

from torchtext import data, datasets, vocab

__all__ = ["data", "datasets", "vocab"]
