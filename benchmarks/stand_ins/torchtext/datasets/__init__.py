"""Texts in parts, each an iterator that can be read many times."""

from collections.abc import Callable, Iterator
from typing import Any

import made_up
from torch.utils.data import IterableDataset

from torchtext.datasets import multi30k

__all__ = ["AG_NEWS", "Multi30k", "WikiText2", "multi30k"]


class _Texts(IterableDataset[Any]):
    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return self.make()


def _parts(split: str | tuple[str, ...], make: Callable[[str], Iterator[Any]]) -> Any:
    if isinstance(split, str):
        return _Texts(lambda: make(split))
    return tuple(_Texts(lambda part=part: make(part)) for part in split)  # type: ignore[misc]


def AG_NEWS(root: str = "", split: str | tuple[str, ...] = ("train", "test")) -> Any:  # noqa: N802
    """Return texts with a label from 1 to 4."""

    def make(part: str) -> Iterator[tuple[int, str]]:
        for label, text in made_up.topics(part, 2000 if part == "train" else 400):
            yield label + 1, text

    return _parts(split, make)


def WikiText2(root: str = "", split: str | tuple[str, ...] = ("train", "valid", "test")) -> Any:  # noqa: N802
    """Return lines of a long text."""

    def make(part: str) -> Iterator[str]:
        for words in made_up.sentences(part, 3000 if part == "train" else 400):
            yield " ".join(words) + "\n"

    return _parts(split, make)


def Multi30k(  # noqa: N802
    root: str = "",
    split: str | tuple[str, ...] = ("train", "valid", "test"),
    language_pair: tuple[str, str] = ("de", "en"),
) -> Any:
    """Return sentences in two languages."""

    def make(part: str) -> Iterator[tuple[str, str]]:
        for words in made_up.sentences(f"pairs {part}", 800 if part == "train" else 160):
            yield " ".join(words) + "\n", " ".join(made_up.foreign(words)) + "\n"

    return _parts(split, make)
