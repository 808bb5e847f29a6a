"""Measure the behaviour of each function of an experiment as numbers, so that two programs can be compared.

A probe is a function that calls one function of the experiment, or a few that work together. The state and the inputs
that a probe uses do not depend on the rest of the experiment: networks get fixed weights, inputs are random numbers
from fixed seeds, and losses get artificial outputs. So if two programs differ only in their learning rate, their losses
are equal. If they implement the same function in two ways, the numbers are equal up to rounding. Another probe makes
the first steps of the run unchanged, and so shows what the functions do together.

A tensor is reduced to a few numbers: its projections on fixed random directions. A table of rows is reduced to the
means of random Fourier features, which do not depend on the order of the rows.
"""

import ast
import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from types import FunctionType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from harness.behaviour.compare import NOT_EXECUTED, RAISES
from harness.behaviour.execution import not_executed, record_places
from harness.behaviour.projections import (
    describe_rows,
    distance_along,
    draw_normal,
    fourier_features,
    index_equal,
    project,
    project_changes,
    project_rows,
    round_number,
)
from harness.behaviour.recorders import record_autocast, record_batch_sizes, record_clipping
from harness.behaviour.stand_ins import (
    StandIn,
    bytes_of,
    draw_batch,
    draw_validation_batch,
    give_weights,
    output_shape,
    outputs_for,
)
from harness.checks.core.subject import Subject, Trial, no_autocast
from harness.data import DATASETS
from harness.run.evaluation import IGNORED
from harness.run.experiment import Experiment
from harness.run.setup import advance_schedule
from harness.run.step_hooks import OPTIMIZER_HOOKS

Numbers = list[float | str]
AspectFigures = dict[str, Numbers]
MeasuredBehaviour = dict[str, AspectFigures]
"""For each aspect in `compare.ASPECTS`, its figures: named lists of numbers."""

_ROWS = 48
_STEPS = 6
_MOST_SCHEDULED = 400  # steps of an optimizer with artificial gradients
_EXAMINED = 12  # how many of these steps are compared
_EVALUATED = (257, 65, 17, 1)  # sizes of the splits; of 65 rows in batches of 64, the second batch has one row
_BUILDS = 40
_RATE = 1e-3  # learning rate of the plain SGD optimizer
_DRAWN = 60  # how many batches are prepared for statistics of a random augmentation
# Weights are doubled, at most _DOUBLINGS times, until in 90 % of the rows the largest logit exceeds the second largest
# by _SURE. The loss is then about 0.01.
_DOUBLINGS, _SURE = 12, 6.0
_NEAR = 0.1  # noise that is added to outputs to make numeric labels, in standard deviations
_FACTOR = 2.0**10  # a second scale for gradient scalers, whose initial scale is 2**16
_CERTAIN = (0.0, 1.0, 4.0)  # how strongly the outputs of a stand-in network favour the correct label


def measure_behaviour(subject: Subject) -> MeasuredBehaviour:
    """Measure every aspect of an experiment and return the figures (named lists of numbers) of each aspect.

    Raises `UserError` if the experiment cannot be set up. If a probe raises an exception, its aspect gets a figure
    `raises` with the name of the exception.
    """
    subject.trial()
    found: MeasuredBehaviour = {}
    with record_places(str(subject.path)) as executed:
        for name, probe in _PROBES.items():
            found[name] = figures_of(probe(subject))
    found[NOT_EXECUTED] = not_executed(ast.parse(subject.source), executed)
    return found


Probe = Iterator[tuple[str, Sequence[float | str]]]


def figures_of(probe: Probe) -> AspectFigures:
    """Return the rounded figures of a probe; if it raises, also a figure `raises` with the name of the exception."""
    figures: AspectFigures = {}
    try:
        for figure, numbers in probe:
            figures[figure] = [round_number(number) for number in numbers]
    except Exception as error:  # the program's code may raise anything
        figures[RAISES] = [type(error).__name__]
    return figures


# --- data ---


def _training_data(subject: Subject) -> Probe:
    trial = subject.trial()
    yield from _data(trial.inputs, trial.labels)
    yield "steps", [trial.steps]
    yield _try_measure("not finite with blank images", lambda: _not_finite(subject))


def _not_finite(subject: Subject) -> list[float]:
    """Return the counts of non-finite inputs in both splits if some images are entirely black, grey or white."""
    data = subject.tensors()
    if DATASETS[data.name].kind == "images":
        for split in (data.train, data.validation):
            split.inputs[:3] = torch.tensor([0, 128, 255], dtype=torch.uint8).view(3, 1, 1, 1)
    return [float((~inputs.isfinite()).sum()) for inputs, _ in subject.experiment().load_data(data)]


def _validation_data(subject: Subject) -> Probe:
    yield from _data(*subject.trial().validation)
    if DATASETS[subject.data.name].kind == "tokens":
        yield _try_measure("with a symbol that training has not seen", lambda: _with_unseen(subject))


def _with_unseen(subject: Subject) -> list[float]:
    """Replace the most common symbol in the training split by another, and return features of the validation inputs."""
    data = subject.tensors()
    symbols = data.train.symbols
    commonest, next_one = symbols[symbols > 0].bincount().argsort(descending=True, stable=True)[:2]
    symbols[symbols == commonest] = next_one
    _, (inputs, _) = subject.experiment().load_data(data)
    return fourier_features(project_rows(inputs))


def _data(inputs: Tensor, labels: Tensor) -> Probe:
    yield "rows", [len(inputs)]
    yield "shape", [*inputs.shape[1:], *labels.shape[1:]]
    phases = project_rows(inputs), project_rows(labels)
    yield "inputs", fourier_features(*phases[:1])
    yield "labels", fourier_features(*phases[1:])
    yield "pairs", fourier_features(*phases)


def _preparation(subject: Subject) -> Probe:
    """Call `prepare_batch` on artificial batches; if its result is random, only `_augmentation` describes it."""
    trial = subject.trial()
    inputs, labels = draw_batch(trial, _ROWS)
    inputs[0] = 0  # a blank example
    batches = _all_prepared(trial, inputs, labels)
    shape = labels.shape
    kept = [float((targets == labels).double().mean()) if targets.shape == shape else -1.0 for _, targets in batches]
    yield "labels as they were", [sum(kept) / len(kept)]
    yield "examples that others change", [_others_changed(trial, inputs, labels, batches, seed) for seed in (1, 2)]
    if _is_random(batches):
        yield "at random", [1.0]
        return
    prepared, targets = batches[0]
    yield "whole", [len(prepared), *describe_rows(prepared, targets), *describe_rows(targets)]
    yield "inputs", project(prepared)


def _others_changed(trial: Trial, inputs: Tensor, labels: Tensor, batches: "_TensorBatches", seed: int) -> float:
    """Replace a random half of the batch, and return the fraction of the other half that changes, too."""
    half = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))[: len(inputs) // 2]
    others, other_labels = draw_batch(trial, len(inputs), seed=70 + seed)
    replaced = inputs.index_copy(0, half, others[half]), labels.index_copy(0, half, other_labels[half])
    kept = torch.ones(len(inputs), dtype=torch.bool).index_fill(0, half, False)
    found = []
    for one, two in zip(batches, _all_prepared(trial, *replaced), strict=True):
        for before, after in zip(one, two, strict=True):
            if before.shape != after.shape or len(before) != len(inputs):
                return 1.0
            rows = (before[kept] != after[kept]) & ~(before[kept].isnan() & after[kept].isnan())
            found.append(float(rows.flatten(1).any(dim=1).double().mean() if rows.dim() > 1 else rows.double().mean()))
    return sum(found) / len(found)


def _augmentation(subject: Subject) -> Probe:
    """Describe a random augmentation by statistics over many batches of noise."""
    trial = subject.trial()
    inputs, labels = draw_batch(trial, _ROWS)
    batches = _all_prepared(trial, inputs, labels)
    if not _is_random(batches) or any(one.shape != inputs.shape for one, _ in batches):
        return
    noise = inputs.flatten(1).double()
    parts = [(prepared.flatten(1).double() * noise).sum(dim=1) / noise.square().sum(dim=1) for prepared, _ in batches]
    sizes = [prepared.double().norm() / inputs.double().norm() for prepared, _ in batches]
    alike = inputs[:1].expand_as(inputs).contiguous()
    drawn = [[bytes_of(row) for row in prepared] for prepared, _ in _all_prepared(trial, alike, labels)]
    every = len(drawn) * _ROWS
    beside = {
        apart: [rows[place] == rows[place + apart] for rows in drawn for place in range(_ROWS - apart)]
        for apart in (1, 2)
    }
    repeats = [one == two for pair in itertools.pairwise(drawn) for one, two in zip(*pair, strict=True)]
    # All values are fractions or ratios. They are in one list, because rounding is relative to the largest number in
    # it.
    yield (
        "shares",
        [
            float(torch.stack(parts).mean()),  # fraction of the original example that remains
            float(torch.stack(sizes).mean()),
            # Fractions of different examples: in the same batch, and at the same index in all batches.
            sum(len(set(rows)) for rows in drawn) / every,
            sum(len(set(rows)) for rows in zip(*drawn, strict=True)) / every,
            *(sum(equal) / len(equal) for equal in beside.values()),
            *(_freedom(drawn, apart) for apart in beside),
            sum(repeats) / len(repeats),  # fraction equal to the example at the same index in the next batch
        ],
    )


def _freedom(drawn: Sequence[Sequence[bytes]], apart: int) -> float:
    """Return the number of different pairs of examples that are `apart` rows apart, divided by its maximum.

    The result is 1 for independent random draws. The maximum is the number of pairs or, if there are only a few
    different examples, the number of their combinations.
    """
    pairs = [pair for rows in drawn for pair in zip(rows, rows[apart:], strict=False)]
    different = len({one for rows in drawn for one in rows})
    return len(set(pairs)) / min(len(pairs), different**2)


_TensorBatches = Sequence[tuple[Tensor, Tensor]]


def _all_prepared(trial: Trial, inputs: Tensor, labels: Tensor) -> _TensorBatches:
    """Prepare one batch many times and return the results; the random generators are not reset in between."""
    torch.default_generator.manual_seed(100)
    generator = torch.Generator().manual_seed(5)
    return [trial.experiment.prepare_batch(inputs.clone(), labels.clone(), generator) for _ in range(_DRAWN)]


def _is_random(batches: _TensorBatches) -> bool:
    first, *others = batches
    return any(_differ(one, two) for other in others for one, two in zip(first, other, strict=True))


# --- network ---


def _network(subject: Subject) -> Probe:
    """Call the network with fixed weights in eval and in training mode, and compute its gradients."""
    trial = subject.trial()
    model = trial.model
    yield "parameters", [float(parameter.numel()) for parameter in model.parameters()]
    for kind in ("usual", "large", "blank"):
        give_weights(model)
        inputs, _ = draw_batch(trial, _ROWS)
        if inputs.is_floating_point():
            inputs *= {"usual": 1.0, "large": 30.0, "blank": 0.0}[kind]
        with torch.no_grad():
            torch.default_generator.manual_seed(7)
            yield f"{kind} inputs, eval mode", project(model.eval()(inputs))
            torch.default_generator.manual_seed(7)
            before = [buffer.clone() for buffer in model.buffers()]
            yield f"{kind} inputs, training mode", project(model.train()(inputs))
        yield f"{kind} inputs, statistics", project_changes(before, model)
    inputs, _ = draw_batch(trial, _ROWS)
    for name, some in _other_forms(inputs):
        for mode in ("eval", "training"):
            give_weights(model)
            torch.default_generator.manual_seed(7)
            yield _try_measure(f"{name}, {mode} mode", lambda: project(model.train(mode == "training")(some)))  # noqa: B023
    give_weights(model)
    model.zero_grad()
    torch.default_generator.manual_seed(7)
    outputs = model.train()(inputs)
    (outputs * draw_normal(outputs.shape, 8)).sum().backward()
    yield "gradients", [number for p in model.parameters() for number in project(_gradient(p))[:1]]


def _other_forms(inputs: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, batch) for batches that are smaller than in training, and for batches of shorter texts."""
    yield "one row", inputs[:1]
    yield "two rows", inputs[:2]
    if not inputs.is_floating_point() and inputs.dim() == 2:
        yield "two symbols", inputs[:, :2]
        yield "half the symbols", inputs[:, : -(-inputs.shape[1] // 2)]


def _try_measure(figure: str, measure: Callable[[], Sequence[float | str]]) -> tuple[str, Sequence[float | str]]:
    """Return (figure, numbers), with the exception's name instead of numbers if the measurement raises an exception."""
    try:
        return figure, measure()
    except Exception as error:
        return figure, [type(error).__name__]


def _initialization(subject: Subject) -> Probe:
    """Describe the initial weights by statistics over many builds, because each build draws other random numbers."""
    model = subject.trial().model
    tensors = list(model.parameters())
    yield "parameters", [float(tensor.numel()) for tensor in tensors]
    yield "equal ones", index_equal([bytes_of(tensor) for tensor in tensors])
    counts = [tensor.numel() * _BUILDS for tensor in tensors]
    sums, squares = [0.0] * len(counts), [0.0] * len(counts)
    experiment = subject.experiment()
    torch.default_generator.manual_seed(subject.settings.seed)
    for _ in range(_BUILDS):
        for place, tensor in enumerate(experiment.build_model().parameters()):
            values = tensor.detach().double()
            sums[place] += float(values.sum())
            squares[place] += float(values.square().sum())
    means = [total / count for total, count in zip(sums, counts, strict=True)]
    sizes = [math.sqrt(total / count) for total, count in zip(squares, counts, strict=True)]
    yield "sizes", sizes
    # A mean below this bound is noise around zero.
    noise = [6 * size / math.sqrt(count) for size, count in zip(sizes, counts, strict=True)]
    yield "centres", [mean if abs(mean) > least else 0.0 for mean, least in zip(means, noise, strict=True)]


# --- training ---


def _update_rule(subject: Subject) -> Probe:
    """Make optimizer and schedule steps with artificial gradients, and yield how far each parameter moves."""
    trial = subject.trial()
    model, optimizer, scheduler = trial.model, trial.optimizer, trial.scheduler
    held = {id(parameter): group for group in optimizer.param_groups for parameter in group["params"]}
    # An optimizer skips a parameter that requires no gradient.
    yield "held", [float(id(parameter) in held and parameter.requires_grad) for parameter in model.parameters()]
    yield "foreign", [float(len(held.keys() - {id(parameter) for parameter in model.parameters()}))]
    steps = min(trial.steps, _MOST_SCHEDULED)
    watched = [0, 1, 2, *(round(index * (steps - 1) / (_EXAMINED - 1)) for index in range(1, _EXAMINED))]
    small = [p for p in model.parameters() if p.numel() and p.is_floating_point()]
    for size in (1e-2, 1e-6):
        trial = subject.trial()
        model, optimizer, scheduler = trial.model, trial.optimizer, trial.scheduler
        give_weights(model)
        small = list(model.parameters())
        start = [p.detach().clone() for p in small]
        base = [draw_normal(p.shape, 20 + number) * size for number, p in enumerate(small)]
        for gradient in base:
            gradient.flatten()[::7] = 0.0  # zero, as for a dead unit
        signs = draw_normal((trial.steps,), 9).sign() * 0.5 + 0.6  # factors 1.1 and 0.1 for the gradients
        for step in range(steps):
            for p, gradient in zip(small, base, strict=True):
                if p.requires_grad:
                    p.grad = gradient * float(signs[step])
            optimizer.step()
            if scheduler is not None:
                advance_schedule(scheduler)
            if step in watched:
                moved = [distance_along(p.detach() - s, g) for p, s, g in zip(small, start, base, strict=True)]
                yield f"gradients of {size:g}, point {watched.index(step)}", moved
        yield (
            f"gradients of {size:g}, in all",
            [float((p.detach() - s).double().norm()) for p, s in zip(small, start, strict=True)],
        )


def _plain_optimizer(trial: Trial, rate: float = _RATE) -> torch.optim.Optimizer:
    """Return a plain SGD optimizer with the hooks of the program's optimizer, because hooks may clip gradients."""
    optimizer = torch.optim.SGD(trial.model.parameters(), lr=rate)
    for name in OPTIMIZER_HOOKS:
        getattr(optimizer, name).update(getattr(trial.optimizer, name))
    return optimizer


def _loss(subject: Subject) -> Probe:
    """Compute the loss of artificial outputs, and yield its values and gradients."""
    trial = subject.trial()
    shape = output_shape(trial)
    _, labels = draw_batch(trial, _ROWS)
    for rows in (_ROWS, 7, 1):
        for scale in (0.0, 1.0, 10.0, 1e4):
            outputs = (draw_normal((rows, *shape), 31) * scale).requires_grad_()
            loss = trial.experiment.compute_loss(outputs, labels[:rows])
            yield f"{rows} rows of {scale:g}", [float(loss.detach()), *_derivative(loss, outputs)]
        right = (outputs_for(labels[:rows], shape) * 20).requires_grad_()
        loss = trial.experiment.compute_loss(right, labels[:rows])
        yield f"{rows} rows, right", [float(loss.detach()), *_derivative(loss, right)]


def _derivative(loss: Tensor, outputs: Tensor) -> list[float]:
    if not loss.requires_grad:
        return [0.0]
    (gradient,) = torch.autograd.grad(loss, outputs, allow_unused=True)
    return [0.0] if gradient is None else project(gradient)


def _step(subject: Subject) -> Probe:
    """Make training steps with fixed weights, artificial inputs and a plain SGD optimizer, in several situations.

    A fault may have an effect only if the loss is large or small, if the inputs are huge, if a batch is smaller, or at
    one scale of a gradient scaler.
    """
    for kind in ("usual inputs", "large inputs", "small loss", "another factor"):
        trial = subject.trial()
        give_weights(trial.model)
        optimizer = _plain_optimizer(trial)
        rows = [trial.batch_size] * 3
        if kind == "small loss":
            rows[1] = max(trial.batch_size // 2, 1)
        batches = [draw_batch(trial, size, seed) for size, seed in zip(rows, (3, 4, 5), strict=True)]
        scale = 100.0 if kind == "large inputs" else 1.0
        if not batches[0][0].is_floating_point() and scale != 1.0:
            continue
        if kind == "small loss":
            _make_sure(trial.model, *batches[0])
            outputs = _outputs_in_steps(subject, trial.model, batches)
            batches = [
                (inputs, _fitting_labels(one, labels)) for one, (inputs, labels) in zip(outputs, batches, strict=True)
            ]
        if kind == "another factor" and not _set_factors(trial):
            continue
        yield from ((f"{kind}, {name}", found) for name, found in _steps(trial, optimizer, batches, scale))


@torch.no_grad()
def _make_sure(model: nn.Module, inputs: Tensor, labels: Tensor) -> None:
    """Double the weights of a classifier until most of its predictions have a high probability."""
    for _ in range(0 if labels.is_floating_point() and not _are_answers(labels) else _DOUBLINGS):
        if _is_sure(model.eval()(inputs)):
            return
        for matrix in (parameter for parameter in model.parameters() if parameter.dim() > 1):
            matrix.mul_(2)


def _outputs_in_steps(subject: Subject, model: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """Return the outputs (B, ...) of a network for each of the given batches, as `train_step` computes them.

    If a step calls the network several times, or not on the whole batch, the outputs are computed in training mode.
    """
    trial = subject.trial()
    trial.model.load_state_dict(model.state_dict())
    optimizer = _plain_optimizer(trial, rate=0.0)
    calls: list[tuple[Tensor, Tensor]] = []
    handle = trial.model.register_forward_hook(lambda _, given, outputs: calls.append((given[0], outputs.detach())))
    found = []
    for number, (inputs, labels) in enumerate(batches):
        torch.default_generator.manual_seed(50 + number)
        with torch.no_grad():
            usual = copy.deepcopy(trial.model).train()(inputs)
        calls.clear()
        torch.default_generator.manual_seed(50 + number)
        trial.experiment.train_step(trial.model.train(), optimizer, inputs, labels)
        is_whole = len(calls) == 1 and torch.equal(calls[0][0], inputs)
        found.append(calls[0][1] if is_whole else usual)
    handle.remove()
    return found


def _fitting_labels(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return labels that almost agree with outputs, so that the loss is small."""
    outputs = outputs.float()
    if not labels.is_floating_point():
        found = outputs.argmax(dim=-1) if outputs.dim() > labels.dim() else (outputs > 0).long()
        return torch.where(labels == IGNORED, labels, found.reshape(labels.shape))
    if _are_answers(labels):
        return (outputs > 0).to(labels.dtype).reshape(labels.shape)
    if outputs[0].numel() + 1 == labels[0].numel():  # the first column is a class
        return torch.cat([outputs.argmax(dim=-1, keepdim=True).to(labels.dtype), outputs], dim=1)
    if outputs.numel() != labels.numel():
        return labels
    deviation = min((float(one) for one in (outputs.std(), labels.std()) if one > 0), default=0.0)
    return outputs.reshape(labels.shape) + _NEAR * deviation * draw_normal(labels.shape, 75)


def _are_answers(labels: Tensor) -> bool:
    """Return whether all targets are zeros and ones (yes or no)."""
    return bool(((labels == 0) | (labels == 1)).all())


def _is_sure(outputs: Tensor) -> bool:
    if outputs.dim() < 2 or outputs.shape[-1] < 2:
        return bool(outputs.abs().quantile(0.1) > _SURE)
    best = outputs.topk(2, dim=-1).values
    return bool((best[..., 0] - best[..., 1]).flatten().quantile(0.1) > _SURE)


def _set_factors(trial: Trial) -> bool:
    """Set the scale of the program's gradient scalers to _FACTOR; return whether any scaler is enabled."""
    scalers = trial.experiment.scalers()
    for scaler in scalers.values():
        scaler.load_state_dict({**scaler.state_dict(), "scale": _FACTOR} if scaler.is_enabled() else {})
    return any(scaler.is_enabled() for scaler in scalers.values())


def _step_at_start(subject: Subject) -> Probe:
    """Make the first step of the run twice, in the program's precision and in full precision, and compare the steps.

    Both steps start from the program's data and initial weights and use a plain SGD optimizer. Initial weights may come
    from different random numbers in another program. So the probe does not yield the steps, but only how well the step
    in the program's precision agrees with the step in full precision.
    """
    steps = []
    for full in (False, True):
        trial = subject.trial(disable_amp=full)
        start = [p.detach().clone() for p in trial.model.parameters()]
        optimizer = _plain_optimizer(trial)
        with no_autocast() if full else nullcontext():
            torch.default_generator.manual_seed(50)
            trial.experiment.train_step(trial.model.train(), optimizer, *next(trial.batches()))
        moved = [(p.detach() - s).double().flatten() for p, s in zip(trial.model.parameters(), start, strict=True)]
        steps.append(torch.cat(moved))
    one, two = steps
    yield (
        "as in full precision",
        [float(nn.functional.cosine_similarity(one, two, dim=0)), float(one.norm() / two.norm().clamp(min=1e-30))],
    )


def _steps(
    trial: Trial, optimizer: torch.optim.Optimizer, batches: Sequence[tuple[Tensor, Tensor]], scale: float = 1.0
) -> Probe:
    model = trial.model
    start = [p.detach().clone() for p in model.parameters()]
    before = [buffer.clone() for buffer in model.buffers()]
    losses, sizes = [], []
    with record_batch_sizes(model) as calls, record_autocast() as reduced:
        for number, (inputs, labels) in enumerate(batches):
            torch.default_generator.manual_seed(50 + number)
            given = inputs * scale if scale != 1.0 else inputs
            losses.append(float(trial.experiment.train_step(model.train(), optimizer, given, labels)))
            if number in (0, len(batches) - 1):
                moved = [p.detach() - s for p, s in zip(model.parameters(), start, strict=True)]
                yield f"moves, step {number}", [float(one.double().norm()) for one in moved]
                yield f"directions, step {number}", [number for one in moved for number in project(one)[:2]]
        sizes = list(calls)
    yield "losses", losses
    yield "statistics", project_changes(before, model)
    yield "calls of the network", [float(len(sizes)), *map(float, sorted(set(sizes)))]
    yield "precision", [" ".join(sorted(reduced))]


def _first_steps(subject: Subject) -> Probe:
    """Make the first steps of the run without any changes; yield the losses and how far the weights move."""
    trial = subject.trial()
    start = [p.detach().clone() for p in trial.model.parameters()]
    losses = [float(trial.step(*batch)) for batch in trial.batches(_STEPS)]
    yield "losses", losses
    yield (
        "moves",
        [float((p.detach() - s).double().norm()) for p, s in zip(trial.model.parameters(), start, strict=True)],
    )


# --- evaluation, serving ---


def _evaluation(subject: Subject) -> Probe:
    """Evaluate networks with fixed outputs (`StandIn`) and different accuracy on splits of different sizes."""
    trial = subject.trial()
    shape = output_shape(trial)
    inputs, labels = draw_validation_batch(trial, max(_EVALUATED))
    for certain in _CERTAIN:
        outputs = draw_normal((len(inputs), *shape), 41) + certain * outputs_for(labels, shape)
        for name, rows in _splits(labels).items():
            model = StandIn(inputs, outputs, trial.model)
            found = trial.experiment.evaluate(model, inputs[rows].clone(), labels[rows].clone())
            yield f"stand-in {certain:g}, {name}", _metrics(found)


def _evaluation_of_network(subject: Subject) -> Probe:
    """Evaluate the network with fixed weights; it is in training mode, then in eval mode when `evaluate` is called."""
    trial = subject.trial()
    inputs, labels = draw_validation_batch(trial, max(_EVALUATED))
    for name, rows in _splits(labels).items():
        again = subject.trial()
        model = again.model
        give_weights(model)
        before = [buffer.clone() for buffer in model.buffers()]
        for mode in (True, False):
            torch.default_generator.manual_seed(11)
            found = again.experiment.evaluate(model.train(mode), inputs[rows].clone(), labels[rows].clone())
            yield f"{name}, from {'training' if mode else 'eval'} mode", _metrics(found)
        yield f"{name}, statistics", project_changes(before, model)


def _splits(labels: Tensor) -> dict[str, Tensor]:
    """Return {name: row indices} of several splits: splits of different sizes, and a split with unequal classes."""
    order = (labels.flatten(1)[:, 0] if labels.dim() > 1 else labels).argsort(stable=True)
    splits = {f"{rows} rows": torch.arange(len(labels))[:rows] for rows in _EVALUATED}
    return splits | {"uneven classes": torch.cat([order[:31], order[-6:]])}


def _probe_serving(subject: Subject) -> Probe:
    """Serve raw examples before training and, after some steps, with fixed weights in training and in eval mode."""
    trial = subject.trial()
    if not trial.experiment.serves:
        return
    yield "before training", _serve(trial, trial.model)
    for batch in trial.batches(_STEPS):
        trial.step(*batch)
    for seed in (1, 2):
        model = copy.deepcopy(trial.model)
        give_weights(model, seed=seed)
        for mode in (True, False):
            yield f"weights {seed}, from {'training' if mode else 'eval'} mode", _serve(trial, model.train(mode))


def _functions_of(experiment: Experiment) -> Iterator[tuple[str, object, str]]:
    """Yield (name, owner, attribute) for the functions and methods of the program that torch does not call itself."""
    for name, one in vars(experiment.module).items():
        if getattr(one, "__module__", "") != experiment.module.__name__:
            continue
        if isinstance(one, type) and issubclass(one, nn.Module):
            yield from (
                (f"{name}.{key}", one, key)
                for key, part in vars(one).items()
                if callable(part) and not key.startswith("_") and key != "forward"
            )
        elif isinstance(one, FunctionType):
            yield name, experiment.module, name


def _functions_of_serving(subject: Subject) -> set[str]:
    """Return the names of the program's functions and methods that `predict` calls."""
    trial, used = subject.trial(), set[str]()
    with ExitStack() as patches:
        for name, owner, key in list(_functions_of(trial.experiment)):
            patches.enter_context(patch.object(owner, key, _record_calls(getattr(owner, key), name, used)))
        _serve(trial, trial.model)
    return used


def _record_calls(function: Callable[..., Any], name: str, used: set[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def record(*arguments: Any, **options: Any) -> Any:
        used.add(name)
        return function(*arguments, **options)

    return record


def _serve(trial: Trial, model: nn.Module) -> list[float]:
    raw = trial.served.inputs[: 4 * _ROWS]
    return [float(one) for one in trial.experiment.predict(copy.deepcopy(model), raw.clone())]


# --- features ---


def _features(subject: Subject) -> Probe:
    """Yield, for each feature such as dropout, whether it is active (1 or 0), or a number for its strength."""
    trial = subject.trial()
    experiment, model, optimizer = trial.experiment, trial.model, trial.optimizer
    inputs, labels = draw_batch(trial, _ROWS)
    yield "random augmentation", [float(_is_random(_all_prepared(trial, inputs, labels)))]
    give_weights(model)
    with torch.no_grad():
        yield "dropout", [_differ(model.train()(inputs), model.train()(inputs))]
    yield "resting parameters", [float(_count_resting(subject))]
    yield "pruning", [sum(1 - float(mask.double().mean()) for mask in _weight_masks(model))]
    groups = optimizer.param_groups
    decays = any(group.get("weight_decay", 0) for group in groups) or _moves_without_gradient(subject)
    yield "weight decay", [float(decays or _moves_by_itself(subject))]
    rates = set()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for _ in range(min(trial.steps, _MOST_SCHEDULED)):
        rates.add(round(float(groups[0]["lr"]), 12))
        optimizer.step()
        if trial.scheduler is not None:
            advance_schedule(trial.scheduler)
    yield "schedule", [float(len(rates) > 2)]
    yield "serving", [float(experiment.serves)]
    for name in sorted(_functions_of_serving(subject)) if experiment.serves else ():
        yield f"{name} in predict", [1.0]
    trial = subject.trial()
    optimizer = _plain_optimizer(trial)
    batch = next(trial.batches())
    with record_batch_sizes(trial.model) as calls, record_autocast() as reduced:
        trial.experiment.train_step(trial.model.train(), optimizer, *batch)
    yield "parts of a batch", [float(len(calls))]
    yield "division of a batch", [len(batch[0]) / max(calls, default=len(batch[0]))]
    yield "mixed precision", [float(bool(reduced))]
    yield "loss scaling", [float(any(scaler.is_enabled() for scaler in trial.experiment.scalers().values()))]
    yield "clipping", [float(_clips(subject))]


def _count_resting(subject: Subject) -> int:
    """Return how many parameters the first steps of the run do not change."""
    trial = subject.trial()
    start = [p.detach().clone() for p in trial.model.parameters()]
    for batch in trial.batches(_STEPS):
        trial.step(*batch)
    return sum(torch.equal(p, s) for p, s in zip(trial.model.parameters(), start, strict=True))


def _weight_masks(model: nn.Module) -> Iterator[Tensor]:
    """Yield the weight masks: boolean buffers with the shape of a parameter of the same module."""
    for module in model.modules():
        shapes = {parameter.shape for parameter in module.parameters(recurse=False)}
        masks = (buffer for buffer in module.buffers(recurse=False) if buffer.dtype == torch.bool)
        yield from (mask for mask in masks if mask.shape in shapes)


def _moves_without_gradient(subject: Subject) -> bool:
    """Return whether the first optimizer step moves weights although all gradients are zero, for example by a hook."""
    trial = subject.trial()
    start = [p.detach().clone() for p in trial.model.parameters()]
    for p in trial.model.parameters():
        p.grad = torch.zeros_like(p)
    trial.optimizer.step()
    return not all(torch.equal(p, s) for p, s in zip(trial.model.parameters(), start, strict=True))


def _moves_by_itself(subject: Subject) -> bool:
    """Return whether `train_step` moves weights differently than a plain SGD optimizer with the same gradients does."""
    trial = subject.trial()
    start = [p.detach().clone() for p in trial.model.parameters()]
    trial.experiment.train_step(trial.model.train(), _plain_optimizer(trial), *next(trial.batches()))
    moves = [
        (p.detach() - s + _RATE * p.grad, p.detach() - s)
        for p, s in zip(trial.model.parameters(), start, strict=True)
        if p.grad is not None and bool(p.grad.isfinite().all())
    ]
    return any(float(rest.norm()) > 0.01 * float(moved.norm()) for rest, moved in moves)


def _clips(subject: Subject) -> bool:
    """Return whether a step clips gradients.

    This is so if the step calls `clip_grad_norm_`, or if inputs that are 100 times larger do not at least double the
    length of the step.
    """
    moves = []
    with record_clipping() as clipped:
        for scale in (1e3, 1e5):
            trial = subject.trial()
            give_weights(trial.model)
            start = [p.detach().clone() for p in trial.model.parameters()]
            inputs, labels = draw_batch(trial, trial.batch_size)
            if inputs.is_floating_point():
                inputs = inputs * scale
            optimizer = _plain_optimizer(trial)
            trial.experiment.train_step(trial.model.train(), optimizer, inputs, labels)
            moved = [(p.detach() - s).double().norm() for p, s in zip(trial.model.parameters(), start, strict=True)]
            moves.append(float(torch.stack(moved).norm()))
    return bool(clipped) if not inputs.is_floating_point() else bool(clipped) or moves[1] < 2 * moves[0]


def _differ(one: Tensor, other: Tensor) -> float:
    return float(one.shape != other.shape or not torch.equal(one, other))


_PROBES: Mapping[str, Callable[[Subject], Probe]] = {
    "training data": _training_data,
    "validation data": _validation_data,
    "batches": _preparation,
    "augmentation": _augmentation,
    "network": _network,
    "first weights": _initialization,
    "loss": _loss,
    "update rule": _update_rule,
    "step": _step,
    "step at the start": _step_at_start,
    "first steps": _first_steps,
    "evaluation": _evaluation,
    "evaluation of the network": _evaluation_of_network,
    "serving": _probe_serving,
    "features": _features,
}


# --- artificial inputs, labels and weights ---


# --- numbers of tensors ---


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _metrics(found: Mapping[str, float | None]) -> list[float]:
    return [value for value in found.values() if value is not None]
