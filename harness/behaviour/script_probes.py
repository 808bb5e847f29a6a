"""Measure the behaviour of a script as numbers, so that two programs can be compared.

`harness.scripts.observation` runs the script three times: with artificial gradients to its end, with held weights until
its first validation, and as it is until it has saved twice. Each run gives the figures of some aspects; see
`harness.behaviour.compare.ASPECTS`. If the script can resume, it then continues from the first checkpoint of the third
run.
"""

import ast
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness.behaviour.compare import NOT_EXECUTED
from harness.behaviour.execution import not_executed, record_places
from harness.behaviour.probes import AspectFigures, Probe, figures_of
from harness.behaviour.projections import fourier_features, project, project_rows
from harness.scripts.observation import Kind, Observation, observe
from harness.scripts.run import evaluate_checkpoint
from harness.scripts.script import CHECKPOINT, ScriptSubject

_BUILDS = 8  # first weights are the mean over this many seeds
_FIRST = 4  # updates, calls and losses at the beginning that are compared one by one
_RECORDED = 100  # calls of each function in which executed statements are recorded


def measure_script(subject: ScriptSubject) -> dict[str, AspectFigures]:
    """Measure every aspect of a script and return the figures (named lists of numbers) of each aspect.

    Raises `UserError` if the script fails. If a later measurement fails, its aspect gets a figure `raises`.
    """
    with record_places(str(subject.path), _RECORDED) as executed:
        moved = _observe(subject, "artificial gradients", keep=_is_compared)
        with _not_recorded():  # all of this was executed before, and recording costs more than the script
            held = _observe(subject, "held weights", keep=lambda update: update < _FIRST, ends=_has_validated)
            natural = _observe(subject, "natural", keep=lambda update: update < _FIRST, ends=_has_saved_twice)
        seen = {"held": held, "moved": moved, "natural": natural}
        found = {name: figures_of(probe(subject, seen)) for name, probe in _PROBES.items()}
    found[NOT_EXECUTED] = not_executed(ast.parse(subject.source), executed)
    return found


def _observe(subject: ScriptSubject, kind: Kind, **options: Any) -> Observation:
    return observe(subject.script, subject.data, subject.settings, kind, **options)


def _is_compared(update: int) -> bool:
    """Return whether the update rule is compared at this update: the first three and powers of two."""
    return update < 3 or update & (update - 1) == 0


def _has_validated(seen: Observation) -> bool:
    return bool(seen.figures) and seen.made >= _FIRST


def _has_saved_twice(seen: Observation) -> bool:
    return len(seen.saved) > 1


Seen = Mapping[str, Observation]


# --- data ---


def _training_data(subject: ScriptSubject, seen: Seen) -> Probe:
    if not _is_random(seen):
        yield from _batches(seen["held"].training)
    yield "updates", [seen["moved"].made]


def _augmentation(subject: ScriptSubject, seen: Seen) -> Probe:
    if not _is_random(seen):
        return
    yield from _batches(seen["held"].training)
    versions = seen["natural"].versions
    yield "different draws", [len(set(versions)) / len(versions)]


def _is_random(seen: Seen) -> bool:
    """Return whether the data set gives random versions of an example."""
    return len(set(seen["natural"].versions)) > 1


def _validation_data(subject: ScriptSubject, seen: Seen) -> Probe:
    yield from _batches(seen["held"].validation)


def _batches(batches: Sequence[Sequence[Tensor]]) -> Probe:
    """Describe the rows of batches: which parts belong together, without the order of the rows."""
    features: list[list[float]] = []
    rows = 0
    for parts in batches:
        alike = [part for part in parts if part.dim() and len(part) == len(parts[0])]
        if not alike or not len(alike[0]):
            continue
        described = fourier_features(*(project_rows(part.float()) for part in alike))
        features.append([len(alike[0]) * number for number in described])
        rows += len(alike[0])
    yield "rows", [rows]
    if batches:
        yield "shape", [float(part.dim()) for part in batches[0]]
    if rows and len({len(one) for one in features}) == 1:
        yield "features", [sum(column) / rows for column in zip(*features, strict=True)]


def _order(subject: ScriptSubject, seen: Seen) -> Probe:
    orders = [_flat(order) for order in seen["natural"].orders]
    batches = seen["held"].training
    yield "sizes", [float(len(batches[0][0])), float(len(batches[-1][0]))] if batches and batches[0] else []
    if not orders:
        return
    first = orders[0]
    yield "batches of an epoch", [len(seen["natural"].orders[0])]
    yield "different examples", [len(set(first)) / max(len(first), 1)]
    yield "sorted", [float([*first] == sorted(first))]
    full = [order for order in orders if len(order) == len(first)]
    yield "different orders", [len(set(full)) / len(full)]
    for order in seen["natural"].second.get("orders", [])[:1]:
        other = set(_flat(order))
        yield "examples of both ranks", [len(other & set(first)) / max(len(other), 1)]


def _flat(order: Sequence[Any]) -> tuple[int, ...]:
    found: list[int] = []
    for indices in order:
        found += list(indices) if isinstance(indices, list | tuple) else [indices]
    return tuple(int(one) for one in found)


# --- with held weights ---


def _outputs(subject: ScriptSubject, seen: Seen) -> Probe:
    calls = [call for call in seen["held"].calls if call.with_gradients]
    for number, call in enumerate(calls[:_FIRST]):
        yield f"call {number}", [] if call.output is None else [*call.output.shape, *project(call.output.float())]


def _modes(subject: ScriptSubject, seen: Seen) -> Probe:
    calls = seen["moved"].calls
    yield "training calls in training mode", [_share(call.training for call in calls if call.with_gradients)]
    yield "other calls in training mode", [_share(call.training for call in calls if not call.with_gradients)]
    made = max(seen["moved"].made, 1)
    yield "training calls for an update", [round(sum(call.with_gradients for call in calls) / made, 2)]


def _share(flags: Iterator[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found) if found else 0.0


def _losses(subject: ScriptSubject, seen: Seen) -> Probe:
    for number, losses in enumerate(seen["held"].losses[:_FIRST]):
        yield f"update {number}", losses
    for number, losses in enumerate(seen["held"].second.get("losses", [])[:_FIRST]):
        yield f"update {number} of the second rank", losses


def _gradients(subject: ScriptSubject, seen: Seen) -> Probe:
    for number, update in seen["held"].updates.items():
        yield (
            f"missing, update {number}",
            [name for name, one in zip(update.names, update.gradients, strict=True) if one is None],
        )
        given = [one for one in update.gradients if one is not None]
        yield f"norms, update {number}", [project(one)[0] for one in given]
        yield f"directions, update {number}", [value for one in given for value in project(one)[1:3]]


def _validation(subject: ScriptSubject, seen: Seen) -> Probe:
    yield from _figures(seen["held"].figures[:1])


def _figures(logged: Sequence[tuple[int, Mapping[str, float]]]) -> Probe:
    names = dict.fromkeys(name for _, figures in logged for name in figures)
    for name in names:
        yield name, [figures[name] for _, figures in logged if name in figures]


# --- with artificial gradients ---


def _update_rule(subject: ScriptSubject, seen: Seen) -> Probe:
    moved = seen["moved"]
    for number, update in moved.updates.items():
        yield f"moves, point {number}", [project(one)[0] for one in update.moves]
        yield f"directions, point {number}", [value for one in update.moves for value in project(one)[1:3]]
    yield "learning rates", moved.rates[:: max(len(moved.rates) // 32, 1)]


def _evaluated_weights(subject: ScriptSubject, seen: Seen) -> Probe:
    evaluated = seen["moved"].evaluated
    for name, weights in (("first", evaluated[:1]), ("second", evaluated[1:2]), ("last", evaluated[-1:])):
        for tensors in weights:
            yield f"{name} validation", [value for one in tensors for value in project(one.float())[:2]]


def _saved_weights(subject: ScriptSubject, seen: Seen) -> Probe:
    saved = seen["moved"].saved
    yield "after updates", [float(updates) for updates, _ in saved]
    for name, checkpoints in (("first", saved[:1]), ("last", saved[-1:])):
        for _, content in checkpoints:
            weights = _load(content)["model"]
            floats = [one for one in weights.values() if isinstance(one, Tensor) and one.is_floating_point()]
            yield f"{name} checkpoint", [value for one in floats for value in project(one)[:2]]


def _load(content: bytes) -> Any:
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _of_checkpoint(subject: ScriptSubject, seen: Seen) -> Probe:
    saved = seen["moved"].saved
    if not saved:
        return
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
        (Path(folder) / CHECKPOINT).write_bytes(saved[-1][1])
        figures = evaluate_checkpoint(subject.script, subject.data, Path(folder))
    yield from ((name, [value]) for name, value in figures.items() if isinstance(value, float))


def _end_of_run(subject: ScriptSubject, seen: Seen) -> Probe:
    moved = seen["moved"]
    yield from _figures(moved.figures[-2:])
    last = [call for call in moved.calls[-_FIRST:] if not call.with_gradients and call.output is not None]
    for number, call in enumerate(last):
        assert call.output is not None
        yield f"call {number} from the end", [*call.output.shape, *project(call.output.float())]


# --- as it is ---


def _precision(subject: ScriptSubject, seen: Seen) -> Probe:
    natural = seen["natural"]
    yield "in use", sorted(name for name in natural.features if name.startswith(("autocast", "loss in")))
    outputs = {str(call.output.dtype) for call in natural.calls if call.with_gradients and call.output is not None}
    yield "outputs", sorted(outputs)
    yield "weights", sorted({str(p.dtype) for network in natural.networks for p in network.parameters()})


def _first_weights(subject: ScriptSubject, seen: Seen) -> Probe:
    sums: dict[str, float] = dict.fromkeys(seen["natural"].first_weights, 0.0)
    for number in range(_BUILDS):
        with _not_recorded():
            built = _observe(subject, "natural", seed=1000 + number, ends=lambda seen: bool(seen.networks))
        for name, norm in built.first_weights.items():
            sums[name] = sums.get(name, 0.0) + norm / _BUILDS
    yield "norms", list(sums.values())


@contextmanager
def _not_recorded() -> Iterator[None]:
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)


def _first_steps(subject: ScriptSubject, seen: Seen) -> Probe:
    natural = seen["natural"]
    yield "losses", [sum(losses) for losses in natural.losses[:_FIRST]]
    if natural.second:
        pairs = zip(natural.states, natural.second["states"], strict=False)
        yield "ranks with equal weights", [float(one == other) for one, other in pairs]
    yield (
        "moves",
        [
            float(torch.stack([one.double().norm() for one in update.moves]).norm())
            for update in natural.updates.values()
        ],
    )


def _probe_resuming(subject: ScriptSubject, seen: Seen) -> Probe:
    """Continue from the first checkpoint, and compare the next one with a run that was not interrupted."""
    natural = seen["natural"]
    if not subject.script.can_resume or len(natural.saved) < 2:
        return
    (at, checkpoint), (end, wanted) = natural.saved[0], natural.saved[1]
    resumed = _observe(subject, "natural", resume_from=checkpoint, ends=lambda seen: bool(seen.saved))
    if not resumed.saved:
        yield "saved", [0.0]
        return
    yield "updates", [float(resumed.saved[0][0] - (end - at))]
    pairs = zip(natural.losses[at:end], resumed.losses, strict=False)
    yield "other losses", [_share(one != two for one, two in pairs)]
    rates = zip(natural.rates[at:end], resumed.rates, strict=False)
    yield "other learning rates", [_share(one != two for one, two in rates)]
    one, two = ([*_leaves(_load(content))] for content in (wanted, resumed.saved[0][1]))
    yield "other entries of the checkpoint", [_share(x != y for x, y in zip(one, two, strict=False))]
    yield "entries of the checkpoint", [float(len(one) - len(two))]


def _leaves(state: Any) -> Iterator[Any]:
    """Yield the numbers and texts of a checkpoint, and its tensors as lists."""
    if isinstance(state, Mapping):
        state = tuple(state.values())
    if isinstance(state, list | tuple):
        for part in state:
            yield from _leaves(part)
    else:
        yield state.tolist() if isinstance(state, Tensor) else state


def _features(subject: ScriptSubject, seen: Seen) -> Probe:
    moved, natural = seen["moved"], seen["natural"]
    used = moved.features
    yield "dropout", [float(used["dropout"] > 0)]
    yield "mixed precision", [float(any(name.startswith("autocast") for name in used))]
    yield "clipping", [float(used["clipping"] > 0)]
    yield "several workers", [float(used["workers"] > 0)]
    yield "random augmentation", [float(_is_random(seen))]
    yield "schedule", [float(len({round(rate, 12) for rate in moved.rates}) > 2)]
    calls = sum(call.with_gradients for call in natural.calls)
    yield "parts of a batch", [float(round(calls / max(natural.made, 1)))]
    yield "resuming", [float(subject.script.can_resume)]
    trained = [p for network in moved.networks for p in network.parameters()]
    evaluated = [call.network for call in natural.calls if not call.with_gradients]
    own = {id(p) for network in natural.networks for p in network.parameters()}
    yield "averaged weights", [float(any(id(p) not in own for one in evaluated for p in one.parameters()))]
    yield "frozen parameters", [float(sum(not p.requires_grad for p in trained))]


_PROBES: Mapping[str, Callable[[ScriptSubject, Seen], Probe]] = {
    "training data": _training_data,
    "validation data": _validation_data,
    "augmentation": _augmentation,
    "batches": _order,
    "first weights": _first_weights,
    "outputs": _outputs,
    "modes": _modes,
    "losses": _losses,
    "gradients": _gradients,
    "validation": _validation,
    "update rule": _update_rule,
    "evaluated weights": _evaluated_weights,
    "saved weights": _saved_weights,
    "evaluation of the checkpoint": _of_checkpoint,
    "end of the run": _end_of_run,
    "precision": _precision,
    "first steps": _first_steps,
    "resuming": _probe_resuming,
    "features": _features,
}
