"""The healthy band: how far from the reference fix a sound fix may end on held-out data (`bands.toml`, measured)."""

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from grader.replay.replay import SplitFigures
from grader.score.verdict import Model, Number
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
        return self._reaches(self.figure(figures), self._limit(self.figure(reference)))

    def is_plausible(self, reference: SplitFigures) -> bool:
        """Say whether the reference fix itself ended where it does, whatever its seed."""
        worst = self.reference[0 if self.accuracy_below is not None else 1]
        return self._reaches(self.figure(reference), self._limit(worst))

    def wanted(self, reference: SplitFigures) -> str:
        """Return the band in words."""
        side = "at most" if self.accuracy_below is None else "at least"
        return f"{side} {self._limit(self.figure(reference)):.4g}"

    def figure(self, figures: SplitFigures) -> Number:
        """Return the figure that the band is about."""
        return figures.accuracy if self.accuracy_below is not None else figures.loss

    def _limit(self, reference: Number) -> float:
        value = float(reference) if isinstance(reference, int | float) else math.nan
        if self.accuracy_below is not None:
            return value - self.accuracy_below
        return value * (self.loss_times or 1.0)

    def _reaches(self, value: Number, limit: float) -> bool:
        if not isinstance(value, int | float):
            return False
        return value >= limit if self.accuracy_below is not None else value <= limit


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
