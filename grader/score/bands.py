"""The healthy band: how far from the reference fix a sound fix may end on held-out data (`bands.toml`, measured)."""

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from grader.replay.replay import SplitFigures
from grader.score.exhibits import Number
from grader.score.verdict import Model
from harness.toml_file import read_record

BANDS = Path(__file__).with_name("bands.toml")


class Band(Model):
    """One healthy experiment on one data set: accuracy at most `accuracy_below`, or loss at most `loss_times`.

    `reference` is the lowest and the highest figure of the reference fix over seeds.
    """

    experiment: str
    dataset: str
    accuracy_below: float | None = None
    loss_times: float | None = None
    reference: tuple[float, float]

    def holds(self, figures: SplitFigures, reference: SplitFigures) -> bool:
        """Say whether figures lie within the band around the reference's; a non-finite one never does."""
        if self.accuracy_below is not None:
            return _number(figures.accuracy) >= _number(reference.accuracy) - self.accuracy_below
        return _number(figures.loss) <= _number(reference.loss) * (self.loss_times or 1.0)

    def is_plausible(self, reference: SplitFigures) -> bool:
        """Say whether the reference fix itself ended where it does, whatever its seed."""
        low, high = self.reference
        if self.accuracy_below is not None:
            return _number(reference.accuracy) >= low - self.accuracy_below
        return _number(reference.loss) <= high * (self.loss_times or 1.0)

    def wanted(self, reference: SplitFigures) -> str:
        """Return the band in words."""
        if self.accuracy_below is not None:
            return f"at least {_number(reference.accuracy) - self.accuracy_below:.4g}"
        return f"at most {_number(reference.loss) * (self.loss_times or 1.0):.4g}"

    def figure(self, figures: SplitFigures) -> Number:
        """Return the figure that the band is about."""
        return figures.accuracy if self.accuracy_below is not None else figures.loss


class _Bands(Model):
    format_version: Literal[1]
    bands: Annotated[tuple[Band, ...], Field(alias="band")]


def load_bands(path: Path = BANDS) -> tuple[Band, ...]:
    """Return all bands that were measured."""
    return read_record(path, _Bands).bands


def load_band(experiment: str, dataset: str) -> Band:
    """Return the band of an experiment on a data set. Raises `LookupError` if none was measured."""
    for band in load_bands():
        if (band.experiment, band.dataset) == (experiment, dataset):
            return band
    raise LookupError(f"no healthy band for {experiment} on {dataset}: grader selfcheck --write measures it")


def _number(value: Number) -> float:
    """Return a figure that can be compared; what is none compares as false."""
    return float(value) if isinstance(value, int | float) else math.nan
