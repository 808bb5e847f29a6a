"""The form of the examples and the class names of each data set. This module loads no data and does not import NumPy.

If `grader new-experiment` adds a data set, its form and its class names are in the file `embedded/<name>.toml`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class DataForm:
    """The form of the examples in a data set. An experiment can use any data set with the same form as its own.

    `shape` is the shape of one example: an image (C, H, W), a row of a table (F,), or a text of T symbols (T,).
    `columns` contains the names of a table's columns; the last one is the target. Data of the kind "files" can be read
    only by scripts made for them: `columns` contains the name of the data set.
    """

    kind: Literal["images", "table", "tokens", "files"]
    shape: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "images":
            channels, height, width = self.shape
            return f"{height}x{width} images of {channels} channel(s)"
        if self.kind == "files":
            return f"the files of {self.columns[0]}"
        what = "symbols" if self.kind == "tokens" else f"columns, from {self.columns[0]} to {self.columns[-1]}"
        return f"{'texts' if self.kind == 'tokens' else 'rows'} of {self.shape[0]} {what}"


def _table(columns: str) -> DataForm:
    names = tuple(columns.split())
    return DataForm("table", (len(names) - 1,), names)


# Data sets that are stored as the files `train.*` and `val.*`.
FILES = ("tales", "dates", "shipments", "cells", "demand", "rings", "grammar", "pole")
_GREY, _COLOUR = DataForm("images", (1, 28, 28)), DataForm("images", (3, 32, 32))
_ADDED = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "embedded").glob("*.toml"))
}
DATASETS: Mapping[str, DataForm] = {
    "digits": _GREY,
    "shapes": _COLOUR,
    "mnist": _GREY,
    "cifar10": _COLOUR,
    "visits": _table(
        "patient day age weight pressure pulse sleep steps stress income distance pain days_until_next returned"
    ),
    "machines": _table("machine t1 t2 t3 t4 t5 t6 t7 t8 t9 t10 load speed heat noise failed"),
    "orders": _table("week price items weight stock staff traffic late"),
    "strength": _table("sample cement slag ash water plasticizer coarse fine age strength"),
    "alarms": _table("reading s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 alarm"),
    "phrases": DataForm("tokens", (17,)),
    "marks": DataForm("tokens", (24,)),
    **{name: DataForm("files", columns=(name,)) for name in FILES},
    **{name: DataForm(told["kind"], tuple(told["shape"]), tuple(told["columns"])) for name, told in _ADDED.items()},
}

# The data sets in the repository; the other data sets are downloaded.
EMBEDDED = tuple(name for name in DATASETS if name not in ("mnist", "cifar10"))

_NUMERALS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_FIGURES = ("disc", "ring", "square", "triangle", "star", "cross", "crescent", "heart", "arrow", "hourglass")
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# For each data set, the names of its classes; empty if the target is a measured number.
CLASS_NAMES: Mapping[str, tuple[str, ...]] = {
    "digits": _NUMERALS,
    "shapes": _FIGURES,
    "mnist": _NUMERALS,
    "cifar10": _OBJECTS,
    "visits": ("stays away", "returns"),
    "machines": ("runs", "fails"),
    "orders": ("in time", "late"),
    "strength": (),
    "alarms": ("quiet", "alarm"),
    "phrases": ("a", "b", "c", "d", "e", "f", "g", "h"),
    "marks": ("north", "east", "south", "west"),
    **dict.fromkeys(FILES, ()),
    **{name: tuple(told["classes"]) for name, told in _ADDED.items()},
}
