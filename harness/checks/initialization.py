"""Pass 256 examples forward and a random gradient backward through the untrained network; measure how much arrives.

`signal kept` is the variance of the inputs of the last layer, divided by the variance of the inputs of the first layer.
Each variance is taken between the examples. If each layer keeps half of the variance, only a thousandth is left after
ten layers. He et al. (arXiv:1502.01852) choose initial weights that keep the variance. `gradient kept` is the gradient
norm of the first trained weight matrix divided by the gradient norm of the last one. A unit is dead if it is zero for
every example.

During the measurement, dropout is off, and batch norm uses the statistics of the batch. Some weight matrices and some
scales of normalization layers start at zero on purpose, for example in a last layer or at the end of a residual branch.
The check gives them the usual initial weights, because otherwise it could not measure the layers behind them. A layer
may get no gradient if it is frozen, or if it is detached and in no optimizer. The check accepts a signal that shrinks
or grows on the way if the variance at the last layer is on a usual scale, for example because of a normalization.
"""

import copy
import math

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, Table, percent, short
from harness.checks.core.subject import Subject, matrix_layers, without_zeros
from harness.run.experiment import disable_dropout

# figure                | healthy     | broken  | bound                  | source
# signal kept           | 0.01 to 920 | <= 1e-5 | VANISHES 3e-5          | six layers with ReLU
# signal kept           | 0.01 to 920 | >= 1e12 | EXPLODES 1e6           | standard normal weights, eight layers
# gradient kept         | 0.02 to 15  | <= 2e-4 | GRADIENT_VANISHES 1e-3 | eight layers of sigmoid
# dead units of a layer | <= 56 %     | 100 %   | DEAD 80 %              | a bias of -1
#
# Measured over ten seeds. The healthy networks are fully connected, convolutional and recurrent networks, networks with
# attention, and networks of up to 16 layers with He's weights. With ReLU and torch's default weights, a network with
# four hidden layers keeps 4e-4 of the signal and learns; with six hidden layers, it keeps 1e-5 and hardly learns; with
# eight, it keeps 3e-7 and does not learn.
EXAMPLES = 256
EXPLODES, VANISHES = 1e6, 3e-5
GRADIENT_VANISHES = 1e-3
DEAD = 0.8
_COLUMNS = ("layer", "kind", "variance of its input", "zero units", "norm of its gradient")


def measure(subject: Subject) -> Finding:
    """Pass examples through a copy of the untrained network. Then backpropagate a random gradient from its outputs."""
    trial = subject.trial()
    some = slice(0, max(EXAMPLES, trial.batch_size))
    inputs, _ = trial.prepare(trial.inputs[some], trial.labels[some])
    model = without_zeros(copy.deepcopy(trial.model)).train()
    disable_dropout(model)
    layers = matrix_layers(model)
    own = {name: [*layer.parameters(recurse=False)] for name, layer in layers.items()}
    frozen = {name for name, parameters in own.items() if not any(p.requires_grad for p in parameters)}
    held = {id(p) for group in trial.optimizer.param_groups for p in group["params"]}
    # The optimizer holds the parameters of the original network; the copy has layers with the same names.
    unheld = {
        name
        for name, layer in matrix_layers(trial.model).items()
        if held.isdisjoint(map(id, layer.parameters(recurse=False)))
    }
    # Both dicts are in call order. A recurrent cell is called once per token; its last call counts.
    variances: dict[str, float] = {}
    zeros: dict[str, float] = {}

    def watch(name: str, layer: nn.Module) -> None:
        def note(_layer: nn.Module, given: tuple[object, ...], output: object) -> None:
            told = given[0] if given else None
            if not isinstance(told, Tensor) or not told.is_floating_point():  # the inputs of an embedding are indices
                told = output
            if isinstance(told, Tensor) and len(told) > 1:
                told = told.detach().double()
                variances[name] = float(told.var(dim=0, correction=0).mean())
                # A unit is a feature, or one channel at all positions of an image.
                units = told.flatten(2).abs().amax(dim=2) if _convolves(layer) else told.flatten(0, -2)
                zeros[name] = float((units.abs().amax(dim=0) == 0).double().mean())

        layer.register_forward_hook(note)

    for name, layer in layers.items():
        watch(name, layer)
        for parameter in own[name]:
            parameter.requires_grad_()
    outputs = model(inputs.nan_to_num() if inputs.is_floating_point() else inputs).float()
    (outputs * torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    norms = {name: _gradient_norm(layers[name]) for name in variances}
    if not variances:
        return Finding("scaled", "the network calls no layer with a weight matrix", {})
    first, last = next(iter(variances)), list(variances)[-1]
    signal = _ratio(variances[last], variances[first])
    resting = frozen | {name for name in unheld & norms.keys() if not norms[name]}
    trained = [name for name in variances if name not in resting] or [*variances]
    gradient = _ratio(norms[trained[0]], norms[trained[-1]])
    dead = max((share for name, share in zeros.items() if name != first), default=0.0)
    grown = max(filter(math.isfinite, variances.values()), default=0.0)
    if not math.isfinite(variances[last]) and grown <= EXPLODES:
        outcome = "not-finite"
    elif not math.isfinite(variances[last]) or (signal > EXPLODES and variances[last] > EXPLODES):
        outcome = "exploding"
    elif dead > DEAD:
        outcome = "dead"
    elif (signal < VANISHES and variances[last] < VANISHES) or gradient < GRADIENT_VANISHES:
        outcome = "vanishing"
    else:
        outcome = "scaled"
    rows: list[tuple[Cell, ...]] = [(n, type(layers[n]).__name__, variances[n], zeros[n], norms[n]) for n in variances]
    rows.append(("outputs", "-", float(outputs.detach().double().var(dim=0, correction=0).mean()), None, None))
    return Finding(
        outcome,
        f"signal kept {short(signal)}, gradient kept {short(gradient)}, dead units {percent(dead)}",
        {"signal kept": signal, "gradient kept": gradient, "dead units, worst layer": dead},
        tables=(Table("Layers with weights, in call order", _COLUMNS, tuple(rows)),),
    )


def _convolves(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d)


def _gradient_norm(layer: nn.Module) -> float:
    found = [p.grad.double().square().sum() for p in layer.parameters(recurse=False) if p.grad is not None]
    return math.sqrt(float(sum(found))) if found else 0.0


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else 1.0 if not top else math.inf
