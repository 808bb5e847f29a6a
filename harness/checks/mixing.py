"""Replace one example of a batch, and measure what else changes: inputs, outputs or gradients of the other examples.

Until the loss, each example must stay independent of the other examples of its batch. The check tests this for inputs,
outputs and gradients. It divides each change by the change of the replaced example:

- Inputs: if an example affects the prepared input of another example, it must affect the label of that example, too.
For example, a mixture of two images has a mixture of their labels.

- Outputs in eval mode: the outputs for the other examples must not change. In addition, the same batch must give the
same outputs twice; otherwise the network uses random numbers that eval mode does not switch off. (In training mode,
batch norm mixes a batch by design.)

- The gradients of the loss with respect to the outputs of the other examples must not change. For classes, only the
direction of a gradient counts, because a weighted mean divides by the weights of the whole batch.
"""

import copy

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.loss import form_of
from harness.checks.core.subject import Subject, Trial, without_zeros
from harness.run.evaluation import is_classification

# figure                    | healthy | broken | bound        | source
# change of other inputs    | 0       | 1      | INPUTS 0.1   | prepare_batch mixes the order or the layout
#                           | 0.004   |        |              | standardizing a batch by its own mean
# change of other outputs   | 0       | 0.02   | OUTPUTS 1e-4 | a softmax over a batch of 64
#                           |         | 5e-4   |              | a mean over the batch in a side branch (gate)
# change of other gradients | <= 1e-6 | 0.02   | LOSSES 1e-3  | float32 sums; a softmax over a batch of 64
#                           |         | >= 0.2 |              | a loss of all outputs with all targets
#
# In the healthy experiments and their correct variants, no bit of the other examples changes. If a batch of 8 is
# standardized by its own mean and deviation, the other inputs change by 0.03.
INPUTS, OUTPUTS, LOSSES = 0.1, 1e-4, 1e-3
DRAWN = 1e-3


def measure(subject: Subject) -> Finding:
    """Replace two examples of the first batch, one after the other, and measure what changes for the other examples."""
    trial = subject.trial()
    prepared = _prepare(trial, None)
    found = [_compare(trial, prepared, _prepare(subject.trial(), at)) for at in (0, trial.batch_size - 1)]
    inputs, outputs, losses = (max(column) for column in zip(*found, strict=True))
    if inputs > INPUTS:
        outcome = "mixes-inputs"
    elif _draws(trial, prepared[0]):
        outcome = "draws"
    elif outputs > OUTPUTS:
        outcome = "mixes-outputs"
    else:
        outcome = "mixes-losses" if losses > LOSSES else "apart"
    figures: dict[str, Cell] = {"inputs": inputs, "outputs": outputs, "gradients at the outputs": losses}
    words = ", ".join(f"{name} {short(value)}" for name, value in figures.items())
    if outcome == "draws":
        return Finding(outcome, "two forward passes in eval mode give different outputs", figures)
    return Finding(outcome, f"relative change of other examples: {words}", figures)


def _prepare(trial: Trial, at: int | None) -> tuple[Tensor, Tensor]:
    """Prepare the first batch; if `at` is given, first replace this example by one with another label."""
    inputs, labels = trial.inputs[: trial.batch_size].clone(), trial.labels[: trial.batch_size].clone()
    if at is not None:
        differs = (trial.labels != labels[at]).view(len(trial.labels), -1).any(dim=1)
        other = int(differs.int().flip(0).argmax())  # from the end, so that it is not in the batch
        inputs[at], labels[at] = trial.inputs[-1 - other], trial.labels[-1 - other]
    return trial.prepare(inputs, labels)


def _compare(
    trial: Trial, prepared: tuple[Tensor, Tensor], swapped: tuple[Tensor, Tensor]
) -> tuple[float, float, float]:
    """Return how much inputs, outputs and gradients of other examples change, relative to the replaced example."""
    if any(one.shape != two.shape for one, two in zip(prepared, swapped, strict=True)):
        return 0.0, 0.0, 0.0
    moved = _change(prepared[0], swapped[0])
    own = int(moved.argmax())
    told = _change(prepared[1], swapped[1]) > 0
    mixed = float(moved[~told].max()) / float(moved[own]) if moved[own] and not told.all() else 0.0
    # From here on, compare one prepared batch with itself after one row is replaced.
    inputs, labels = (part.clone() for part in prepared)
    inputs[own], labels[own] = swapped[0][own], swapped[1][own]
    model = without_zeros(copy.deepcopy(trial.model)).eval()
    with torch.no_grad():
        before, after = model(prepared[0]).float(), model(inputs).float()
    if len(before) != len(inputs) or before.shape != after.shape:
        return mixed, 0.0, 0.0
    replaced = before.clone()
    replaced[own] = after[own]
    gradients = [_gradient(trial, before, prepared[1]), _gradient(trial, replaced, labels)]
    if is_classification(before, labels):
        if form_of(trial.experiment.compute_loss, before, labels, "classes") == "relative":
            return mixed, _share(_change(before, after), own), 0.0  # this loss compares examples on purpose
        gradients = [gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1e-30) for gradient in gradients]
    return mixed, _share(_change(before, after), own), _share(_change(*gradients), own)


@torch.no_grad()
def _draws(trial: Trial, inputs: Tensor) -> bool:
    """Return whether two forward passes in eval mode give different outputs; NaN counts as equal to NaN."""
    model = without_zeros(copy.deepcopy(trial.model)).eval()
    outputs = [model(inputs).nan_to_num() for _ in range(2)]
    return bool(outputs[0].shape != outputs[1].shape or _change(*outputs).max() > DRAWN * outputs[0].abs().max())


def _gradient(trial: Trial, outputs: Tensor, labels: Tensor) -> Tensor:
    leaf = outputs.detach().clone().requires_grad_()
    loss = trial.experiment.compute_loss(leaf, labels)
    return torch.autograd.grad(loss, leaf, materialize_grads=True)[0].nan_to_num()


def _change(before: Tensor, after: Tensor) -> Tensor:
    """Return for each row the norm of its change, as a tensor (B,)."""
    change = (after.double() - before.double()).nan_to_num().reshape(len(before), -1)
    return change.square().sum(dim=1).sqrt()


def _share(changes: Tensor, own: int) -> float:
    """Return the largest change of another row, relative to the change of row `own`."""
    others = changes.clone()
    others[own] = 0.0
    return float(others.max() / changes[own]) if changes[own] else 0.0
