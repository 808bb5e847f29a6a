"""Compares three gradients in float64: finite differences, autograd's, and the one that the optimizer uses.

Central differences with a step of 1e-6, for a few entries of each parameter, are compared with autograd's
gradient at the weights before the optimizer's second update. If they differ, something is detached or a
backward pass is wrong. What the optimizer uses is compared with autograd's gradient, summed over the batches
since its first update, up to one factor for each parameter: it may be shorter (clipped, averaged), but must
point the same way. If only that differs, look at what happens to `.grad`. Dropout draws the same units each
time, and autocast is off.

Sources of the bounds: in float64 the differences have an error of about 1e-10 of the loss; gradients too
short for that to resolve count as equal, and 1e-6 passes. Where a ReLU or a maximum changes its mind within
the step, half the step gives another slope: such entries are at a kink and are left out.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Check, Finding, Table, consequence, short, sound
from harness.checks.core.step_gradients import Gradients, used_gradients
from harness.checks.core.subject import Subject, Trial
from harness.checks.loss_form import MOST_ACCUMULATED
from harness.errors import UserError

CHECK = Check(
    order=140,
    question="Is the gradient the slope of the loss?",
    minutes=4,
    in_triage=False,
    outcomes=(
        sound(
            "passes",
            "The optimizer's gradient points along the slope of the loss as it is written. Derivatives are ruled out.",
            "loss_form",
            "data",
        ),
        consequence(
            "differs",
            "Autograd's gradient is not the slope of the loss: some backward pass is wrong, or something detaches.",
            look="what is written by hand in the network and in compute_loss: detach, item, no_grad, backward",
        ),
        consequence(
            "used-differs",
            "Autograd's gradient is the slope of the loss, but the optimizer uses another one.",
            look="train_step: what happens to .grad between the backward pass, the update and the next batch",
        ),
        consequence(
            "not-in-float64",
            "It cannot compute in float64, so nothing can be judged.",
            look="what sets a dtype by hand",
        ),
    ),
)
EPS = 1e-6
PASSES = 1e-6
EXAMPLES = 16
# Of each parameter: the entries with the largest gradients, and as many by chance.
LARGEST = 5

_Batch = tuple[Tensor, Tensor, Tensor]  # inputs, labels, and the state of chance when the step on it began


def measure(subject: Subject) -> Finding:
    """Compare the gradients of every parameter at the weights before the second update."""
    what = f"the second update of the run on {EXAMPLES} examples a batch, in float64, eps {EPS:g}"
    try:
        rows = tuple(_compare(subject.trial(verify=True)))
    except UserError as error:
        return Finding(what, "not-in-float64", str(error).splitlines()[0], {"passes below": PASSES})
    autograd = [row[3] for row in rows]
    used = [row[4] for row in rows if row[4] is not None]
    outcome = "passes" if all(distance < PASSES for distance in used) else "used-differs"
    worst, worst_used = max(autograd, default=None), max(used, default=None)
    columns = "parameter", "entries", "at a kink", "autograd", "used by the optimizer"
    caption = "Relative distance of autograd from finite differences, and of the gradient used from autograd"
    return Finding(
        what,
        outcome if all(distance < PASSES for distance in autograd) else "differs",
        f"relative error {short(worst)} of autograd, {short(worst_used)} of what the optimizer used",
        {"autograd, worst": worst, "used, worst": worst_used, "passes below": PASSES},
        tables=(Table(caption, columns, rows),),
    )


def _compare(trial: Trial) -> list[tuple[str, int, int, float, float | None]]:
    """Return for each parameter: its name, entries compared and left out, and both relative distances."""
    model = trial.model.train()
    named = {name: p for name, p in model.named_parameters() if p.requires_grad and p.numel()}
    used, batches, weights = _second_update(trial, named)
    with torch.no_grad():
        for name, parameter in named.items():
            parameter.copy_(weights[name])

    def loss(inputs: Tensor, labels: Tensor, chance: Tensor) -> Tensor:
        torch.set_rng_state(chance)
        return trial.experiment.compute_loss(model(inputs), labels)

    value, autograd = 0.0, {}
    expected = {name: torch.zeros_like(p) for name, p in named.items()}
    for batch in batches:
        graph = loss(*batch)
        value = graph.item()
        found = torch.autograd.grad(graph, list(named.values()), allow_unused=True)
        for (name, p), gradient in zip(named.items(), found, strict=True):
            autograd[name] = torch.zeros_like(p) if gradient is None else gradient
            expected[name] += autograd[name]
    rng = torch.Generator().manual_seed(0)
    rows = []
    for name, parameter in named.items():
        entries = _entries(autograd[name], rng)
        floor = _unresolved(value, len(entries))
        analytic = autograd[name].flatten()[entries]
        numeric, smooth = _finite_differences(parameter, entries, lambda: loss(*batches[-1]), analytic, floor)
        off = _off_direction(used[name], expected[name], floor) if name in used else None
        length = max(float(analytic[smooth].norm()), float(numeric[smooth].norm()), floor)
        distance = float((analytic - numeric)[smooth].norm()) / length
        rows.append((name, int(smooth.sum()), int((~smooth).sum()), distance, off))
    return rows


def _second_update(trial: Trial, named: dict[str, nn.Parameter]) -> tuple[Gradients, list[_Batch], Gradients]:
    """Return what the optimizer's second update used, the batches since its first one, and the weights before it.

    If it does not update twice in time, nothing was used, and the batch is the last one.
    """
    updated, batches = False, []
    with used_gradients(trial.model) as used:
        for x, y in trial.batches(2 * MOST_ACCUMULATED):
            weights = {name: p.detach().clone() for name, p in named.items()}
            batches.append((x[:EXAMPLES], y[:EXAMPLES], torch.get_rng_state()))
            trial.step(*batches[-1][:2])
            if used and updated:
                return dict(used), batches, weights
            if used:
                updated = True
                used.clear()
                batches.clear()
    return {}, batches[-1:], weights


def _entries(gradient: Tensor, rng: torch.Generator) -> list[int]:
    flat = gradient.detach().flatten().abs()
    largest = flat.topk(min(LARGEST, len(flat))).indices.tolist()
    return list(dict.fromkeys([*largest, *torch.randint(len(flat), (LARGEST,), generator=rng).tolist()]))


@torch.no_grad()
def _finite_differences(
    parameter: nn.Parameter, entries: list[int], loss: Callable[[], Tensor], analytic: Tensor, floor: float
) -> tuple[Tensor, Tensor]:
    """Return the slopes at the entries, and which of them have no kink within the step.

    If most of a parameter's entries seem to have a kink, none counts as one: there the loss is rough, and autograd has
    to answer for it.
    """
    flat = parameter.view(-1)

    def slope(entry: int, eps: float) -> float:
        before = flat[entry].item()
        flat[entry] = before + eps
        above = float(loss())
        flat[entry] = before - eps
        below = float(loss())
        flat[entry] = before
        return (above - below) / (2 * eps)

    numeric = torch.tensor([slope(entry, EPS) for entry in entries], dtype=torch.float64)
    resolved = PASSES * max(float(numeric.norm()), floor) / len(entries) ** 0.5
    smooth = torch.ones(len(entries), dtype=torch.bool)
    for place in (numeric - analytic).abs().gt(resolved).nonzero().flatten().tolist():
        smooth[place] = abs(slope(entries[place], EPS / 2) - float(numeric[place])) <= resolved
    return numeric, smooth if smooth.float().mean() > 0.5 else torch.ones_like(smooth)


def _unresolved(loss: float, entries: int) -> float:
    """Return the length of a gradient below which rounding of the loss alone makes a distance of `PASSES`."""
    rounding = 8 * torch.finfo(torch.float64).eps * max(abs(loss), 1e-30) * math.sqrt(entries)
    return rounding / (2 * EPS) / PASSES


def _off_direction(used: Tensor, expected: Tensor, floor: float) -> float:
    """Return the relative distance of a gradient from the nearest positive multiple of another."""
    square = float(expected.square().sum())
    factor = max(float((used * expected).sum()) / square, 0.0) if square else 0.0
    return float((used - factor * expected).norm()) / max(float(used.norm()), floor)
