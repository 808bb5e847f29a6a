"""Data sets with an index."""

from collections.abc import Iterable
from typing import Any

from torch.utils.data import Dataset


class _Listed(Dataset[Any]):
    def __init__(self, examples: Iterable[Any]) -> None:
        self.examples = list(examples)

    def __getitem__(self, index: int) -> Any:
        return self.examples[index]

    def __len__(self) -> int:
        return len(self.examples)


def to_map_style_dataset(iter_data: Iterable[Any]) -> Dataset[Any]:
    """Return the examples of an iterator as a data set with an index."""
    return _Listed(iter_data)
