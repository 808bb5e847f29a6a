"""Measure the outputs of every layer for the first batch, in training mode, before training and after 20 steps.

A ReLU unit is dead if its output is zero for every example of the batch: such a unit gets no gradient. An output of a
sigmoid or tanh is saturated if it is within 1 % of a bound of its range, where the derivative is almost zero. A softmax
is saturated if its largest probability is above 0.99. A dead or saturated layer stops learning, but the cause is seldom
in this layer: look at the layers before it and at the settings.

A network of several layers counts as linear if its output for a sum of large inputs is the sum of its outputs for these
inputs (except for a constant). The outputs explode if their variance rises above 10,000 and above 100 times its first
value.
"""

import copy
import math

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Finding, Table, percent, short
from harness.checks.core.subject import Subject, matrix_layers
from harness.run.recorder import as_floats, mean_and_variance

# figure                               | healthy | broken  | bound              | source
# dead units of a layer after 20 steps | <= 52 % | >= 73 % | DEAD 60 %          | broken runs blow up or learn nothing
# variance of the output               | < 211   |         | VARIANCE_FLOOR 1e4 | 48 correct runs
# distance from linear                 |         | 1e-6    | LINEAR 1e-3        | networks without activation functions
#
# The outputs explode if their variance exceeds all of these values: VARIANCE_RISE times the first variance,
# VARIANCE_RISE times the variance of the targets, and VARIANCE_FLOOR. If logits have a variance above VARIANCE_FLOOR,
# their softmax consists almost only of zeros and ones.
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
    """Measure all layers on the first batch, before the first step of the run and again after some steps."""
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
    more = ""
    if outcome == "saturated":
        more = f"; saturated entries {percent(saturated)}"
    elif outcome == "linear":
        more = "; the outputs are a linear function of the inputs"
    return Finding(
        outcome,
        f"dead units {percent(dead)}; variance of the output {short(start)} at first, {short(end)} after {STEPS} steps"
        + more,
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
    """Return whether a network of several layers is a linear function of its inputs, plus a constant."""
    if not inputs.is_floating_point() or len(inputs) < MOST or len(matrix_layers(model)) < 2:
        return False
    model = copy.deepcopy(model).eval()
    inputs = STRONG * inputs  # large inputs, because tanh is almost linear near zero
    one, two = inputs.roll(1, 0), inputs.roll(2, 0)
    moved = model(one) - model(two)  # zero if the outputs do not depend on the inputs
    off = (model(inputs + one - two) - model(inputs) - moved).double().norm()
    return bool(off < LINEAR * moved.double().norm())


@torch.no_grad()
def _layers(model: nn.Module, inputs: Tensor) -> tuple[_Layer, ...]:
    """Return a table row for each layer that has no sublayers, in the order in which the network calls the layers."""
    # Use a copy: this forward pass changes the statistics of batch norm, and the trial must continue without this
    # change.
    model = copy.deepcopy(model).train()
    state = torch.get_rng_state()
    layers: dict[str, _Layer] = {}

    def watch(name: str, layer: nn.Module) -> None:
        def note(_layer: nn.Module, _inputs: object, output: object) -> None:
            while isinstance(output, tuple | list) and output:  # an LSTM returns a tuple
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
    """Return the share of dead units and the share of saturated outputs; None if a share does not apply."""
    if isinstance(module, _RECTIFIERS) and output.dim() > 1:
        # A unit is a feature, or one channel at all positions of an image. An output with three dimensions is either
        # (B, C, L) from a convolution or (B, T, F) from a text. Compute the share of dead units for both layouts and
        # take the larger share: the wrong layout hardly ever has dead units, because zeros in all channels of a
        # position are rare.
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
