"""Measure the gradients of the first 20 steps as the optimizer uses them, after any scaling or clipping.

`difference from a recomputed gradient` compares the gradient that the optimizer uses with the gradient of the current
batch alone; 0 means that both are equal bit by bit. Zero entries are normal behind a ReLU. `zero entries beyond those
in float32` are not normal, because float16 has rounded them to zero. To count them, the check repeats the same steps
without autocast. `update/weight` is the length of an update divided by the length of the weights that it changes. About
0.001 is usual; if it is 1, one step overwrites the layer.
"""

import math
from collections.abc import Iterator
from statistics import median

from torch import nn

from harness.checks.core.finding import Cell, Finding, Table, percent, short
from harness.checks.core.subject import Gradients, Subject, disable_unheld_gradients, no_autocast, used_gradients, worst
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder

# figure                                 | healthy | broken  | bound          | source
# difference from a recomputed gradient  | 0       |         | STALE 1e-6     | equal bit by bit
# zero entries beyond those in float32   | <= 1 %  | >= 50 % | UNDERFLOW 10 % | float16 with and without a scaler
# largest norm / first norm              | <= 10   | >= 140  | EXPLODING 30   | the broken runs blow up
# smallest RMS of a matrix / largest RMS | >= 0.06 |         | VANISHING 1e-3
#
# Zero entries are measured over ten seeds, as the median over the second half of the steps, because a gradient scaler
# needs some steps to find its factor.
STEPS = 20
STALE = 1e-6
UNDERFLOW = 0.1
EXPLODING = 30.0
VANISHING = 1e-3
_COLUMNS = ("parameter", "norm", "zeros", "update/weight")


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run with autocast and in float32, and compare norms and zero entries."""
    in_float32 = subject.trial(disable_amp=True)
    disable_unheld_gradients(in_float32)
    with no_autocast():
        zeros = [record["grad_zero_fraction"] or 0.0 for record in in_float32.records(in_float32.batches(STEPS))]
    trial = subject.trial()
    disable_unheld_gradients(trial)
    model, named = trial.model, dict(trial.model.named_parameters())
    records: list[Record] = []
    with Recorder(model) as recorder, used_gradients(model) as used:
        for batch in trial.batches(STEPS):
            before = {name: tensor.detach().double().clone() for name, tensor in named.items()}
            used.clear()
            records.append(recorder.end_batch(trial.step(*batch)))
    zeros_used = [record["grad_zero_fraction"] or 0.0 for record in records]
    used = {name: gradient for name, gradient in used.items() if gradient.numel()}
    # Only matrices count (two or more dimensions), because it is correct that a bias before batch norm has no gradient.
    # For an embedding, only the rows of tokens in the batch count.
    tables = {f"{name}.weight" for name, layer in model.named_modules() if isinstance(layer, nn.Embedding)}
    matrices = [g[g.any(dim=1)] if name in tables else g for name, g in used.items() if g.ndim > 1]
    sizes = [float(g.double().square().mean().sqrt()) if g.numel() else 0.0 for g in matrices]
    norms = [math.nan if record["grad_norm"] is None else record["grad_norm"] for record in records]
    ratios = [float(record["stale_grad_ratio"]) for record in records]
    late = slice(STEPS // 2, None)
    stale = worst(ratios)
    lost = median(own - full for own, full in zip(zeros_used[late], zeros[late], strict=True))
    caption = "Gradients that the optimizer used in the last step"
    outcome = _outcome(norms, stale, lost, sizes) if any(r["grad_norm"] for r in records) else "none"
    more = ""
    if outcome == "underflow":
        more = f", {percent(lost)} more than in float32"
    elif outcome == "vanishing":
        more = f"; smallest gradient of a matrix over the largest {short(min(sizes) / max(sizes))}"
    return Finding(
        outcome,
        f"gradient norm {short(norms[0])} at first, {short(worst(norms))} at most;"
        f" differs from a recomputed gradient by {short(stale)}; zero entries {percent(median(zeros_used))}" + more,
        {
            "first norm": norms[0],
            "greatest norm": worst(norms),
            "greatest difference from a recomputed gradient": stale,
            "zero entries, median": median(zeros_used),
            "zero entries beyond those in float32": lost,
        },
        tables=(Table(caption, _COLUMNS, tuple(_rows(named, before, used))),),
    )


def _outcome(norms: list[float], stale: float, lost: float, sizes: list[float]) -> str:
    """Return the first outcome that applies if the optimizer got a gradient."""
    if not all(map(math.isfinite, norms)):
        return "non-finite"
    if not stale < STALE:
        return "stale"
    if not lost < UNDERFLOW:
        return "underflow"
    if max(norms) > EXPLODING * norms[0]:
        return "exploding"
    return "vanishing" if sizes and min(sizes) < VANISHING * max(sizes) else "fresh"


def _rows(named: dict[str, nn.Parameter], before: Gradients, used: Gradients) -> Iterator[tuple[Cell, ...]]:
    """Yield a table row for each parameter whose gradient the step used; `before` holds the weights before the step."""
    for name, gradient in used.items():
        length = float(before[name].norm())
        moved = float((named[name].detach().double() - before[name]).norm())
        zeros = float((gradient == 0).double().mean())
        yield name, float(gradient.double().norm()), zeros, moved / length if length else math.nan
