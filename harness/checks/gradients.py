"""Looks at the gradients of the first 20 steps as the optimizer uses them, after any scaling or clipping.

`distance from a fresh one` compares the gradient used with the gradient of this batch: 0 means equal bits.
Zeros are normal behind a ReLU; `zero entries beyond those in float32` are not: they are lost in float16. These are the
zeros beyond those of the same steps without autocast, so nothing is lost if nothing is computed in a lower precision.
`update/weight` near 0.001 is usual, 1 rewrites the layer in one step.

Sources of the bounds: a fresh gradient agrees to the bit (1e-6). Scaled float16 loses at most 1 % of the
entries over ten seeds, unscaled 50 % and more (10 %; the median of the second half of the steps, as a scaler
needs some to settle). The greatest norm over the first: healthy at most 10, runs that blow up 140 and more
(30). The least root mean square of a matrix's gradient over the greatest: healthy 0.06 at least (0.001).
"""

import math
from collections.abc import Iterator
from statistics import median

from torch import nn

from harness.checks.core.finding import Cell, Finding, Table, percent, short
from harness.checks.core.subject import Gradients, Subject, rest_unheld, used_gradients, worst
from harness.checks.core.training import no_autocast
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder

STEPS = 20
STALE = 1e-6
UNDERFLOW = 0.1
EXPLODING = 30.0
VANISHING = 1e-3
_COLUMNS = ("parameter", "norm", "zeros", "update/weight")


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run; compare zeros in the second half with float32, look closely at the last."""
    in_float32 = subject.trial(disable_amp=True)
    rest_unheld(in_float32)
    with no_autocast():
        zeros = [record["grad_zero_fraction"] or 0.0 for record in in_float32.records(in_float32.batches(STEPS))]
    trial = subject.trial()
    rest_unheld(trial)
    model, named = trial.model, dict(trial.model.named_parameters())
    records: list[Record] = []
    with Recorder(model) as recorder, used_gradients(model) as used:
        for batch in trial.batches(STEPS):
            before = {name: tensor.detach().double().clone() for name, tensor in named.items()}
            used.clear()
            records.append(recorder.end_batch(trial.step(*batch)))
    zeros_used = [record["grad_zero_fraction"] or 0.0 for record in records]
    used = {name: gradient for name, gradient in used.items() if gradient.numel()}
    # A matrix has two or more dimensions: a bias before a batch norm has no gradient at all, and says nothing.
    # Of an embedding, the rows of symbols that are in the batch count.
    tables = {f"{name}.weight" for name, layer in model.named_modules() if isinstance(layer, nn.Embedding)}
    matrices = [g[g.any(dim=1)] if name in tables else g for name, g in used.items() if g.ndim > 1]
    sizes = [float(g.double().square().mean().sqrt()) if g.numel() else 0.0 for g in matrices]
    norms = [math.nan if record["grad_norm"] is None else record["grad_norm"] for record in records]
    ratios = [float(record["stale_grad_ratio"]) for record in records]
    late = slice(STEPS // 2, None)
    stale = worst(ratios)
    lost = median(own - full for own, full in zip(zeros_used[late], zeros[late], strict=True))
    caption = "By parameter, as the optimizer used it in the last step"
    return Finding(
        _outcome(norms, stale, lost, sizes) if any(r["grad_norm"] for r in records) else "none",
        f"norm {short(norms[0])} at first, {short(worst(norms))} at most; distance from a fresh one {short(stale)};"
        f" zeros {percent(median(zeros_used))}",
        {
            "first norm": norms[0],
            "greatest norm": worst(norms),
            "distance from a fresh gradient, greatest": stale,
            "zero entries, median": median(zeros_used),
            "zero entries beyond those in float32": lost,
        },
        tables=(Table(caption, _COLUMNS, tuple(_rows(named, before, used))),),
    )


def _outcome(norms: list[float], stale: float, lost: float, sizes: list[float]) -> str:
    """Return the first outcome that applies, if the optimizer got any gradient."""
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
    """Yield a row for each parameter whose gradient a step used; `before` holds the weights before it."""
    for name, gradient in used.items():
        length = float(before[name].norm())
        moved = float((named[name].detach().double() - before[name]).norm())
        zeros = float((gradient == 0).double().mean())
        yield name, float(gradient.double().norm()), zeros, moved / length if length else math.nan
