"""Makes six steps and looks at each parameter: is it trainable, which optimizer group holds it, did it move?

A parameter without a group is in no optimizer; a parameter that does not move got no gradient, or a rate of zero. One
whose rate is a token, below a thousandth of the largest, counts as at rest. If everything moves, frozen and forgotten
parameters are ruled out.

Source of the six steps: a gradient scaler skips its first steps until its factor fits, and a layer behind one
that begins at zero waits a step for its gradient; the healthy experiments have moved every parameter within
three steps. Fine-tuning gives early layers a tenth or a hundredth of the rate, seldom a thousandth (0.001).
"""

import torch

from harness.checks.core.finding import Check, Finding, Table, mechanism, sound
from harness.checks.core.subject import Subject

CHECK = Check(
    order=120,
    question="Does a step move every parameter?",
    minutes=3,
    outcomes=(
        sound("all-move", "Every parameter moves: the optimizer holds them all.", "gradients"),
        mechanism(
            "some-rest",
            "Some parameters keep the values that they began with.",
            look="build_optimizer: which parameters it gets; build_model: which ones require a gradient",
        ),
        mechanism(
            "none-moves", "No step changes any parameter.", look="build_optimizer: tensors and rates; train_step"
        ),
    ),
)
STEPS = 6
TOKEN_RATE = 1e-3


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run and see which parameters they move."""
    trial = subject.trial()
    named = dict(trial.model.named_parameters())
    numbered = enumerate(trial.optimizer.param_groups)
    groups = {id(tensor): index for index, group in numbered for tensor in group["params"]}
    # A schedule may have moved the rate that `build_optimizer` gave.
    rates = [float(group.get("initial_lr", group["lr"])) for group in trial.optimizer.param_groups]
    tokens = {index for index, rate in enumerate(rates) if rate < TOKEN_RATE * max(rates)}
    start = {name: tensor.detach().clone() for name, tensor in named.items()}
    moved_at: dict[str, int] = {}
    for index, batch in enumerate(trial.batches(STEPS)):
        trial.step(*batch)
        for name, tensor in named.items():
            token = groups.get(id(tensor)) in tokens
            if name not in moved_at and not token and not torch.equal(tensor.detach(), start[name]):
                moved_at[name] = index
    outcome = "all-move" if len(moved_at) == len(named) else "some-rest"
    moving = f"{len(moved_at)} of {len(named)}"
    rows = []
    for name, tensor in named.items():
        group = groups.get(id(tensor))
        shape = "x".join(map(str, tensor.shape))
        rate = None if group is None else rates[group]
        share = float((tensor.detach() != start[name]).double().mean()) if tensor.numel() else 0.0
        rows.append((name, shape, tensor.requires_grad, group, rate, moved_at.get(name), share))
    columns = "parameter", "shape", "trainable", "group", "lr", "moved at step", "moved"
    return Finding(
        outcome if moved_at else "none-moves",
        f"{moving} parameters move in {STEPS} steps",
        {
            "optimizer": type(trial.optimizer).__name__,
            "parameters that move": moving,
            "parameters in no group": sum(id(tensor) not in groups for tensor in named.values()),
            "parameters not trainable": sum(not tensor.requires_grad for tensor in named.values()),
            "tensors of the optimizer that are no parameter": len(set(groups) - set(map(id, named.values()))),
        },
        tables=(Table("Parameters", columns, tuple(rows)),),
    )
