"""Look up the values in a log, and compare them with values that a report cites, with other logs, and with symptoms."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from harness.errors import UserError, printable, suggestion
from harness.recipes.recipe import HEALTHY, Symptom, load_recipes
from harness.run.metrics_log import Record, numbers_of, parse_log
from harness.run.signals import DERIVED_SIGNALS, SIGNALS, evidence_line, is_fraction, number_text, place_of
from harness.run.symptoms import judge_symptom, signal_values
from harness.submission.report import Sign, agrees

# Only a student's kit has this file. The full suite reads the causes from the recipes instead.
CAUSES = Path(__file__).with_name("causes.json")
# A cited step may be wrong by this number, because some people count steps from 1.
OFF_BY = 1


# Values of a broken and a healthy run differ clearly if they differ by more than this share of the larger value. Both
# runs see the same batches. In a healthy run, the losses of two batches differ by less than half. Validation averages
# over hundreds of images, so a smaller share is clear there.
_STEP_SHARE, _EPOCH_SHARE = 0.5, 0.05
# The first effect of a fault may be small, so a difference of 1 % counts, which is more than rounding. But nobody can
# see less than 3 % in a chart, so the first step or epoch with a difference of 3 % is accepted, too.
_FIRST_SHARES = (0.01, 0.03)
# A value still counts as a first sign until the difference is ten times as large as at its start, or clear.
_GROWTH = 10
# Differences below this are only rounding, because accuracies are float32 numbers.
_ROUNDING = {"eval_mode_gain": 1e-6}


class LogValues:
    """All numbers in a log: `of(signal)[place]` is the value of a signal at the step or epoch `place`."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._series: dict[str, dict[int, float]] = {}
        self._epochs: dict[int, int] = {}  # the epoch of each step
        # Most values in a log belong to single parameters, and only a few of these are needed, so they are read on
        # demand.
        self._unread: dict[str, list[tuple[int, Record]]] = {}
        for record in records:
            place = record.get("step", record.get("epoch"))
            if place is None:
                continue
            if "step" in record and "epoch" in record:
                self._epochs[place] = record["epoch"]
            for name, value in record.items():
                if isinstance(value, dict):
                    self._unread.setdefault(name, []).append((place, value))
                elif name not in ("step", "epoch") and value is not None:
                    self._series.setdefault(name, {})[place] = float(value)
        for name in DERIVED_SIGNALS:
            if found := dict(signal_values(records, name)):
                self._series[name] = found

    def names(self) -> list[str]:
        """Return the names of the signals that have one value for the whole network."""
        return [name for name in self._series if "." not in name]

    def of(self, signal: str) -> Mapping[int, float]:
        """Return the values of a signal by step or epoch. The result is empty if the log does not have the signal."""
        top = signal.split(".", 1)[0]
        for place, table in self._unread.pop(top, ()):
            for name, value in numbers_of({top: table}):
                if value is not None:
                    self._series.setdefault(name, {})[place] = float(value)
        return self._series.get(signal, {})

    def value(self, signal: str, step: int | None, epoch: int | None) -> float:
        """Return the value of a signal at a step, or at an epoch.

        Raises `UserError` if the log does not have the signal or this value. The message does not name the file.
        """
        place, top = place_of(signal), signal.split(".", 1)[0]
        if place is None:
            raise UserError(f"the log has no signal {printable(signal)!r}: {suggestion(top, SIGNALS)}")
        index = step if place == "step" else epoch
        if index is None:
            once, other = ("a batch", "epoch") if place == "step" else ("an epoch", "step")
            raise UserError(f"{printable(signal)} has one value for {once}: cite it with {place}:, not with {other}:.")
        values = self.of(signal)
        if not values:
            below = [name for name in self._series if name.startswith(f"{top}.")]
            known = below or [name for name in self._series if place_of(name) == place]
            raise UserError(f"the log has no {printable(signal)!r}: {suggestion(signal, known)}")
        if index not in values:
            there = f"from {min(values)} to {max(values)}"
            raise UserError(f"the log has no {printable(signal)} at {place} {index}: it has values {there}.")
        return values[index]

    def find(self, sign: Sign, *, within: int = 0) -> int | None:
        """Return the nearest step or epoch that has the cited value, at most `within` from the cited one, or None."""
        kind = "step" if sign.step is not None else "epoch"
        nearest = sorted(range(-within, within + 1), key=abs)
        places = [sign.index + by for by in nearest] if place_of(sign.signal) == kind else []
        return next((place for place in places if self.agrees(sign.value, sign.signal, place)), None)

    def untrue(self, sign: Sign) -> str:
        """Return a clause that says why a cited value is wrong."""
        try:
            value = self.value(sign.signal, sign.step, sign.epoch)
        except UserError as error:
            return str(error)
        return f"there the log has {value:.6g}, not {sign.value}."

    def agrees(self, written: str, signal: str, place: int) -> bool:
        """Return whether a written number agrees with the value of a signal at a step or epoch."""
        values = self.of(signal)
        return place in values and agrees(written, values[place], fraction=is_fraction(signal))

    def evidence(self, run: str, step: int | None, epoch: int | None, signals: Sequence[str] = ()) -> Iterator[str]:
        """Yield a line for report.md for each signal at a step or an epoch, or only for the given signals.

        By default, signals with a value for each parameter or layer are left out. Raises `UserError` if the log does
        not have a signal, the step or the epoch. The message does not name the file.
        """
        kind, place = ("step", step) if step is not None else ("epoch", epoch)
        known = [name for name in self.names() if place_of(name) == kind]
        places = {at for name in known for at in self.of(name)}
        if place not in places:
            raise UserError(f"the log has no {kind} {place}: choose one from 0 to {max(places, default=0)}.")
        for name in signals or [name for name in known if place in self.of(name)]:
            yield evidence_line(run, name, kind, place, number_text(self.value(name, step, epoch)))

    def departs(self, signal: str, place: int, other: "LogValues", share: float | None = None) -> bool:
        """Return whether the values of two logs at a step or epoch differ by more than a share of the larger value."""
        theirs = self.beside(signal, place, other)
        return theirs is not None and _departs(signal, self.of(signal)[place], theirs, share)

    def beside(self, signal: str, place: int, other: "LogValues") -> float | None:
        """Return the value in another log that corresponds to the value of this log at a step or epoch, or None.

        A signal that each log has only once, in its last epoch, is compared even if the runs have different numbers of
        epochs.
        """
        own, theirs = self.of(signal), other.of(signal)
        if place in own and len(own) == len(theirs) == 1:
            return next(iter(theirs.values()))
        return theirs.get(place) if place in own else None

    def departures(self, signal: str, healthy: "LogValues", share: float | None = None) -> Iterator[int]:
        """Yield, in order, the steps or epochs at which a signal differs from the healthy run by more than a share."""
        return (place for place in self.of(signal) if self.departs(signal, place, healthy, share))

    def differs(self, signal: str, place: int, healthy: "LogValues") -> bool:
        """Return whether a signal differs from the healthy run at a step or epoch by more than rounding."""
        return self.departs(signal, place, healthy, _FIRST_SHARES[0])

    def beginnings(self, signal: str, healthy: "LogValues") -> Iterator[range]:
        """Yield the ranges of steps or epochs at which a signal begins to differ from the healthy run.

        Each range starts where the difference first exceeds 1 %, 3 %, or a clear share. The range ends one step or
        epoch after the difference is ten times as large, or clear. A range of steps never extends beyond its epoch.
        """
        clear, values = _clear_share(signal), self.of(signal)
        epochs = self._epochs if place_of(signal) == "step" else {}
        for share in (*_FIRST_SHARES, clear):
            first = next(self.departures(signal, healthy, share), None)
            if first is None:
                return
            grown = min(_GROWTH * _relative_distance(values[first], self.beside(signal, first, healthy) or 0.0), clear)
            same_epoch = [place for place in values if place >= first and epochs.get(place) == epochs.get(first)]
            reached = (place for place in same_epoch if self.departs(signal, place, healthy, grown))
            yield range(first, next(reached, same_epoch[-1]) + OFF_BY + 1)


def no_first_sign(signal: str, place: int, run: LogValues, healthy: LogValues) -> str:
    """Return a clause that says why a value is not the first sign of a fault, or "".

    A first sign differs from the value of the healthy run, at a step or epoch where the signal begins to differ.
    """
    value, theirs = run.of(signal)[place], run.beside(signal, place, healthy)
    if theirs is None:
        return "a healthy run has no value there"
    if not run.departs(signal, place, healthy, _FIRST_SHARES[0]):
        return f"a healthy run has nearly the same value there ({theirs:.4g} instead of {value:.4g})"
    beginnings = list(run.beginnings(signal, healthy))
    if any(place in places for places in beginnings):
        return ""
    return f"{signal} is already wrong from {place_of(signal) or 'step'} {beginnings[0].start} on"


@lru_cache(maxsize=8)
def first_departure(run: LogValues, healthy: LogValues) -> tuple[str, int] | None:
    """Return the signal and the step or epoch at which a run first differs clearly from a healthy run.

    Steps come before epochs. Signals of single layers are left out, because means over a layer are near zero, where any
    relative difference is large.
    """
    first = ((name, next(run.departures(name, healthy), None)) for name in run.names())
    found = [(name, place) for name, place in first if place is not None]
    return min(found, key=lambda item: (place_of(item[0]) == "epoch", item[1]), default=None)


@lru_cache(maxsize=8)  # each result keeps all records of its log in memory
def log_values(log: str) -> LogValues:
    """Return the values in a log. Results are cached, because many reports cite the same logs.

    Raises `UserError` for an invalid log.
    """
    return LogValues(parse_log(log, "metrics.log"))


def _departs(signal: str, value: float, healthy: float, share: float | None = None) -> bool:
    """Return whether a value differs clearly from the value of a healthy run at the same step or epoch.

    The difference is clear if it exceeds a share of the larger value: half or, for values of epochs, a twentieth.
    """
    share = _clear_share(signal) if share is None else share
    is_rounding = max(abs(value), abs(healthy)) <= _ROUNDING.get(signal, 0.0)
    return not is_rounding and _relative_distance(value, healthy) > share


def _clear_share(signal: str) -> float:
    return _EPOCH_SHARE if place_of(signal) == "epoch" else _STEP_SHARE


def _relative_distance(value: float, other: float) -> float:
    """Return the difference of two values divided by the larger value, or infinity if only one of them is finite."""
    if not (math.isfinite(value) and math.isfinite(other)):
        return 0.0 if value == other or (math.isnan(value) and math.isnan(other)) else math.inf
    return abs(value - other) / (max(abs(value), abs(other)) or 1.0)


class Cause(BaseModel):
    """A cause of faults: a sentence that describes it, and the symptoms in the log of every run with this cause.

    A symptom never appears in a healthy run; an observation may also appear in healthy runs.

    area: the area to which the cause belongs, such as data or optimizer; "" for `healthy`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    says: str
    area: str = ""
    symptom: Annotated[tuple[Symptom, ...], Field(strict=False)] = ()
    observation: Annotated[tuple[Symptom, ...], Field(strict=False)] = ()

    def symptoms(self, dataset: str) -> tuple[Symptom, ...]:
        """Return the symptoms that runs with this cause show on a data set."""
        return tuple(item for item in self.symptom if item.dataset in (None, dataset))

    def on(self, dataset: str) -> tuple[Symptom, ...]:
        """Return the symptoms and the observations of this cause on a data set."""
        return (*self.symptoms(dataset), *(item for item in self.observation if item.dataset in (None, dataset)))


_CAUSES = TypeAdapter(dict[str, Cause])


@cache
def load_causes() -> Mapping[str, Cause]:
    """Return {id: cause} for every cause that a report may name. The last cause is `healthy`."""
    if CAUSES.is_file():
        return _CAUSES.validate_json(CAUSES.read_bytes())
    found = {
        recipe.id: Cause(says=recipe.cause, area=recipe.area, symptom=recipe.symptoms, observation=recipe.observations)
        for recipe in load_recipes()[0]
    }
    return {**found, HEALTHY: Cause(says="nothing is wrong with this run")}


def causes_file() -> bytes:
    """Return the content of `causes.json` for a student's kit: every cause with its symptoms."""
    return _CAUSES.dump_json(dict(load_causes()), indent=1, exclude_none=True) + b"\n"


def find_contradicted(
    sign: Sign, symptoms: Sequence[Symptom], records: Sequence[Record], log: LogValues
) -> Symptom | None:
    """Return the first symptom of a cause that a cited value of this run contradicts, or None.

    A value contradicts a symptom if the run does not show the symptom, and the value is outside the symptom's bounds at
    one of its steps. For `reduce = "first"` and `"last"` only one record can contradict. `log` contains the values of
    `records`.
    """
    for symptom in symptoms:
        if symptom.signal != sign.signal or judge_symptom(records, symptom).present:
            continue
        values = signal_values(records, symptom.signal)
        if symptom.steps is not None:
            values = [item for item in values if symptom.steps[0] <= item[0] < symptom.steps[1]]
        for index, value in {"first": values[:1], "last": values[-1:]}.get(symptom.reduce, values):
            above = symptom.above is None or value > symptom.above
            below = symptom.below is None or value < symptom.below
            is_near = abs(index - sign.index) <= OFF_BY
            if is_near and not (above and below) and log.agrees(sign.value, symptom.signal, index):
                return symptom
    return None
