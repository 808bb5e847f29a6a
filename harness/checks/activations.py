"""Looks at what every layer puts out for the first batch, in training mode, before any step and after 20.

A dead unit of a ReLU is zero for every example of the batch and gets no gradient from it. A saturated entry
of a sigmoid or tanh is within a hundredth of a bound, where the derivative is almost zero; a softmax is saturated
where its largest share is above 0.99. Both are where training stops, and seldom why: look at what came before.

Sources of the bounds: healthy networks have at most 52 % dead units in a layer after 20 steps, runs that blew up or
learn nothing 73 % and more (60 %). The variance of the output of 48 sound runs stayed below 211; it may rise to 100
times its first value or the variance of the targets, or to 10,000, where softmax knows only zeros and ones. A network
is linear if sums of inputs, a thousand times as large, give sums of outputs to 1e-3 of their difference (without any
activation 1e-6).
"""

import copy
import math

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Finding, Table, percent, short
from harness.checks.core.subject import Subject, matrix_layers
from harness.run.recorder import as_floats, mean_and_variance

STEPS = 20
VARIANCE_RISE, VARIANCE_FLOOR = 100.0, 1e4
DEAD, SATURATED = 0.6, 0.5
LINEAR, MOST, STRONG = 1e-3, 3, 1e3
_BOUNDS: dict[type[nn.Module], tuple[float, float]] = {
    nn.Sigmoid: (0.0, 1.0),
    nn.Hardsigmoid: (0.0, 1.0),
    nn.Tanh: (-1.0, 1.0),
    nn.Hardtanh: (-1.0, 1.0),
    nn.Softsign: (-1.0, 1.0),
}
_RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold)
_COLUMNS = ("layer", "kind", "mean", "variance", "dead", "saturated")
_MaybeShare = float | None
_Layer = tuple[str, str, float, float, _MaybeShare, _MaybeShare]


def measure(subject: Subject) -> Finding:
    """Look at the first batch before the first step of the run, and at the same batch after some steps."""
    trial = subject.trial()
    batches = trial.batches()
    batch = first = next(batches)
    before, linear = _layers(trial.model, first[0]), _is_linear(trial.model, first[0])
    for _ in range(STEPS):
        trial.step(*batch)
        batch = next(batches)
    after = _layers(trial.model, first[0])
    start, end = before[-1][3], after[-1][3]
    numbers = first[1].is_floating_point() and len(first[1]) > 1
    of_targets = float(first[1].double().var(correction=0)) if numbers else 0.0
    dead = max((share or 0.0 for *_, share, _ in after), default=0.0)
    saturated = max((share or 0.0 for *_, share in after), default=0.0)
    if not all(math.isfinite(layer[3]) for layer in (*before, *after)):
        outcome = "non-finite"
    elif dead > DEAD:
        outcome = "dead"
    elif saturated > SATURATED:
        outcome = "saturated"
    elif linear:
        outcome = "linear"
    else:
        outcome = "exploding" if end > max(VARIANCE_RISE * max(start, of_targets), VARIANCE_FLOOR) else "alive"
    return Finding(
        outcome,
        f"dead units {percent(dead)}, variance of the output {short(start)}, then {short(end)}",
        {
            "dead units, worst layer": dead,
            "saturated entries, worst layer": saturated,
            "variance of the output, before": start,
            "variance of the output, after": end,
        },
        tables=(Table("Before the first step", _COLUMNS, before), Table(f"After {STEPS} steps", _COLUMNS, after)),
    )


@torch.no_grad()
def _is_linear(model: nn.Module, inputs: Tensor) -> bool:
    """Say whether a network of several layers maps sums of inputs to sums of outputs, up to a constant."""
    if not inputs.is_floating_point() or len(inputs) < MOST or len(matrix_layers(model)) < 2:
        return False
    model = copy.deepcopy(model).eval()
    inputs = STRONG * inputs  # near zero, a tanh is a line
    one, two = inputs.roll(1, 0), inputs.roll(2, 0)
    moved = model(one) - model(two)  # nothing, if the outputs do not follow the inputs at all
    off = (model(inputs + one - two) - model(inputs) - moved).double().norm()
    return bool(off < LINEAR * moved.double().norm())


@torch.no_grad()
def _layers(model: nn.Module, inputs: Tensor) -> tuple[_Layer, ...]:
    """Return a row for each layer without layers of its own, in the order of the calls."""
    # A copy: batch norm would learn from this batch, and the run goes on.
    model = copy.deepcopy(model).train()
    state = torch.get_rng_state()
    layers: dict[str, _Layer] = {}

    def watch(name: str, layer: nn.Module) -> None:
        def note(_layer: nn.Module, _inputs: object, output: object) -> None:
            while isinstance(output, tuple | list) and output:  # an LSTM's
                output = output[0]
            if isinstance(output, Tensor) and output.numel():
                mean, variance = as_floats(list(mean_and_variance(output)))
                layers[name] = (name, type(layer).__name__, mean, variance, *_shares(layer, output))

        layer.register_forward_hook(note)

    for name, module in model.named_modules():
        if next(module.children(), None) is None:
            watch(name or type(module).__name__, module)
    model(inputs)
    torch.set_rng_state(state)
    return tuple(layers.values())


def _shares(module: nn.Module, output: Tensor) -> tuple[_MaybeShare, _MaybeShare]:
    """Return the share of dead units of a rectifier, or of saturated entries of a bounded function."""
    if isinstance(module, _RECTIFIERS) and output.dim() > 1:
        # A unit is a feature, or a channel anywhere in the image. Three dimensions are (B, C, L) of a convolution or
        # (B, T, F) of a text: places that are zero in all channels are rare, so the larger share is that of the units.
        units = [output.flatten(2).amax(dim=2)] if output.dim() > 2 else [output]
        units += [output.amax(dim=1)] if output.dim() == 3 else []
        return max(float((unit.amax(dim=0) == 0).double().mean()) for unit in units), None
    if isinstance(module, nn.Softmax):
        largest = output.amax(dim=-1 if module.dim is None else module.dim)
        return None, float((largest > 0.99).double().mean())
    if type(module) in _BOUNDS:
        low, high = _BOUNDS[type(module)]
        margin = 0.01 * (high - low)
        return None, float(((output < low + margin) | (output > high - margin)).double().mean())
    return None, None
