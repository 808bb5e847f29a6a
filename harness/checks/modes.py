"""One network evaluated in every way: as `evaluate` is written, in training mode and in eval mode, twice each."""

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from harness.checks.evidence import Evidence, Table, short
from harness.checks.mechanisms import between_evaluations, network_with_modes, trained
from harness.checks.subject import Subject
from harness.checks.workbench import Bench
from harness.errors import UserError
from harness.run.checkpoint import load_checkpoint
from harness.run.evaluation import is_classification, largest_change, statistics_of

# The bounds of the exercises' own probes: an evaluation that is one repeats to the bit, and reports the accuracy of
# eval mode.
REPEATS = 1e-9
SAME = 5e-3

Outcome = Literal["agree", "unrepeatable", "other-mode"]
Figures = tuple[float, float | None]


@dataclass(frozen=True)
class Evaluation:
    """One way to evaluate: loss and accuracy (None for a regression), twice, and how far a buffer moved meanwhile."""

    way: str
    first: Figures
    second: Figures
    moved: float


@dataclass(frozen=True)
class Modes:
    """All ways for the experiment's network; `stand_in` is how far `evaluate` repeats on a network of our own.

    That one is a classifier with batch norm and dropout; None where `evaluate` cannot take it.
    """

    origin: str
    evaluations: tuple[Evaluation, ...]
    stand_in: float | None

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        written, _, eval_mode = self.evaluations
        repeats = written.first == written.second and written.moved <= REPEATS
        if not repeats or (self.stand_in or 0.0) > REPEATS:
            return "unrepeatable"
        return "agree" if _distance(written.first, eval_mode.first) <= SAME else "other-mode"


def measure(subject: Subject) -> Modes:
    """Evaluate the network of the run's checkpoint; without one, that of the first steps of the run.

    Before each way the network is as training leaves it, in training mode. Raises `UserError` for a checkpoint that
    does not fit.
    """
    bench = subject.bench()
    if subject.checkpoint is None:
        model, origin = trained(bench), "the network after the first 6 steps of the run"
    else:
        model, origin = _loaded(bench, subject.checkpoint), "the network of the run's checkpoint"

    def written(model: nn.Module) -> Figures:
        found = bench.experiment.evaluate(model, *bench.validation)
        return float(found["val_loss"] or 0.0), found["val_accuracy"]

    def own(mode: bool) -> Callable[[nn.Module], Figures]:
        return lambda model: _evaluate(bench, model.train(mode), *bench.validation)

    ways = {"evaluate, as written": written, "training mode": own(True), "eval mode": own(False)}
    stand_in = None
    if not bench.labels.is_floating_point():
        # An evaluation that is made for the experiment's network alone cannot take ours.
        with suppress(UserError):
            stand_in = between_evaluations(bench, network_with_modes(bench))
    return Modes(
        origin=origin,
        evaluations=tuple(_twice(way, copy.deepcopy(model).train(), call) for way, call in ways.items()),
        stand_in=stand_in,
    )


def _loaded(bench: Bench, path: Path) -> nn.Module:
    state = load_checkpoint(path)
    try:
        bench.model.load_state_dict(state["model"])
    except (RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path} is no checkpoint of this experiment ({reason[:160]}): verify it anew."
        ) from None
    return bench.model


def _twice(way: str, model: nn.Module, call: Callable[[nn.Module], Figures]) -> Evaluation:
    before = [buffer.clone() for buffer in statistics_of(model)]
    first, second = call(model), call(model)
    return Evaluation(way, first, second, largest_change(before, statistics_of(model)))


@torch.no_grad()
def _evaluate(bench: Bench, model: nn.Module, inputs: Tensor, labels: Tensor) -> Figures:
    outputs = model(inputs)
    loss = float(bench.experiment.compute_loss(outputs, labels))
    if not is_classification(outputs, labels):
        return loss, None
    return loss, float((outputs.argmax(dim=1) == labels).double().mean())


def _distance(first: Figures, second: Figures) -> float:
    """Return the distance of the accuracies; without, the relative distance of the losses."""
    if first[1] is not None and second[1] is not None:
        return abs(first[1] - second[1])
    return abs(first[0] - second[0]) / max(abs(second[0]), 1e-12)


def show(measured: Modes) -> Evidence:
    """Return the table of evaluations."""
    written, _, eval_mode = measured.evaluations
    return Evidence(
        what=f"{measured.origin}, on the validation split",
        outcome=measured.outcome,
        said=f"loss as written {short(written.first[0])}, again {short(written.second[0])}, eval mode "
        + short(eval_mode.first[0]),
        figures={
            "loss as written": written.first[0],
            "loss in eval mode": eval_mode.first[0],
            "accuracy as written": written.first[1],
            "accuracy in eval mode": eval_mode.first[1],
            "buffers moved by evaluate": written.moved,
            "the same on a network with batch norm and dropout": measured.stand_in,
        },
        tables=(
            Table(
                caption="The same weights",
                columns=("evaluated", "loss", "loss again", "accuracy", "accuracy again", "buffers moved"),
                rows=tuple(
                    (e.way, e.first[0], e.second[0], e.first[1], e.second[1], e.moved)
                    for e in measured.evaluations
                ),
            ),
        ),
    )
