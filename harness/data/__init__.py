"""The data sets by name: their shapes and classes, known before anything is loaded or NumPy imported."""

from collections.abc import Mapping

# The shape (C, H, W) of an image: it says whether a data set fits an experiment.
DATASETS: Mapping[str, tuple[int, int, int]] = {
    "digits": (1, 28, 28),
    "shapes": (3, 32, 32),
    "mnist": (1, 28, 28),
    "cifar10": (3, 32, 32),
}

EMBEDDED = ("digits", "shapes")

_NUMERALS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_FIGURES = ("disc", "ring", "square", "triangle", "star", "cross", "crescent", "heart", "arrow", "hourglass")
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CLASS_NAMES: Mapping[str, tuple[str, ...]] = {
    "digits": _NUMERALS,
    "shapes": _FIGURES,
    "mnist": _NUMERALS,
    "cifar10": _OBJECTS,
}
