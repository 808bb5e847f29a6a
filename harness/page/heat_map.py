"""A confusion matrix as a table whose cells are tinted: numbers to read, colour to see the pattern."""

from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True)
class Cell:
    """A count, its share of the row (0 to 1, two decimals), and whether its tint needs light ink."""

    count: int
    share: str
    strong: bool


@dataclass(frozen=True)
class HeatMap:
    """Rows are true classes, columns predicted ones. `tall` says whether column heads must stand upright."""

    classes: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    summary: str
    tall: bool


def confusion_heat_map(counts: object, class_names: object) -> HeatMap | None:
    """Lay out a square table of counts, (classes, classes) with true classes in rows; None if it is not one.

    Tints are shares of the row, so that classes of unequal size compare. `class_names` that do not fit the
    table are replaced by 0, 1, 2, ...
    """
    if not _is_square_table(counts):
        return None
    names = [str(index) for index in range(len(counts))]
    if isinstance(class_names, list) and len(class_names) == len(counts):
        names = [str(name) for name in class_names]
    total = sum(map(sum, counts))
    right = sum(row[index] for index, row in enumerate(counts))
    return HeatMap(
        classes=tuple(names),
        rows=tuple(tuple(_cell(count, sum(row)) for count in row) for row in counts),
        summary=f"{right} of {total} on the diagonal",
        tall=max(map(len, names)) > 3,
    )


def _is_square_table(counts: object) -> TypeGuard[list[list[int]]]:
    return (
        isinstance(counts, list)
        and bool(counts)
        and all(isinstance(row, list) and len(row) == len(counts) for row in counts)
        and all(isinstance(count, int) and count >= 0 for row in counts for count in row)
    )


def _cell(count: int, row_total: int) -> Cell:
    share = count / row_total if row_total else 0.0
    return Cell(count, f"{share:.2f}", share > 0.5)
