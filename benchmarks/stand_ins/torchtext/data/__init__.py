"""Tokenizers, and data sets with an index."""

from torchtext.data import functional, utils

__all__ = ["functional", "utils"]
