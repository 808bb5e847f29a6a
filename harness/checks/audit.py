"""Every parameter: is it trainable, which optimizer group holds it, and does a step move it?"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from harness.checks.evidence import Evidence, Table
from harness.checks.subject import Subject

# A gradient scaler skips its first steps until its factor fits, and a layer behind one that begins at zero waits a
# step for its gradient: the healthy experiments have moved every parameter within 3 steps.
STEPS = 6

Outcome = Literal["all-move", "some-rest", "none-moves"]


@dataclass(frozen=True)
class ParameterFigures:
    """One parameter; `group` is None outside the optimizer, `moved_at` the first step (from 0) that changed it.

    `entries_moved` is the share of its entries that differ after the last step.
    """

    name: str
    shape: tuple[int, ...]
    trainable: bool
    group: int | None
    lr: float | None
    weight_decay: float | None
    moved_at: int | None
    entries_moved: float


@dataclass(frozen=True)
class Audit:
    """All parameters of the network, and how many tensors of the optimizer belong to no parameter of it."""

    parameters: tuple[ParameterFigures, ...]
    optimizer: str
    strangers: int
    steps: int

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        moved = [parameter.moved_at is not None for parameter in self.parameters]
        if not any(moved):
            return "none-moves"
        return "all-move" if all(moved) else "some-rest"


def measure(subject: Subject, *, steps: int = STEPS) -> Audit:
    """Make the first steps of the run and see which parameters they move."""
    bench = subject.bench()
    named = dict(bench.model.named_parameters())
    groups = {
        id(tensor): index
        for index, group in enumerate(bench.optimizer.param_groups)
        for tensor in group["params"]
    }
    start = {name: tensor.detach().clone() for name, tensor in named.items()}
    moved_at: dict[str, int] = {}
    for index, (inputs, labels) in zip(range(steps), bench.batches(), strict=False):
        bench.step(inputs, labels)
        for name, tensor in named.items():
            if name not in moved_at and not _same(tensor, start[name]):
                moved_at[name] = index

    def figures(name: str, tensor: Tensor) -> ParameterFigures:
        index = groups.get(id(tensor))
        group = {} if index is None else rates[index]
        changed = (tensor.detach() != start[name]).double().mean().item() if tensor.numel() else 0.0
        return ParameterFigures(
            name=name,
            shape=tuple(tensor.shape),
            trainable=tensor.requires_grad,
            group=index,
            lr=group.get("lr"),
            weight_decay=group.get("weight_decay"),
            moved_at=moved_at.get(name),
            entries_moved=changed,
        )

    # As `build_optimizer` gave them: a schedule may have moved the rate since.
    rates = [
        {
            key: float(value)
            for key in ("lr", "weight_decay")
            if (value := group.get(f"initial_{key}", group.get(key))) is not None
        }
        for group in bench.optimizer.param_groups
    ]
    own = {id(tensor) for tensor in named.values()}
    return Audit(
        parameters=tuple(figures(name, tensor) for name, tensor in named.items()),
        optimizer=type(bench.optimizer).__name__,
        strangers=len(set(groups) - own),
        steps=steps,
    )


def _same(tensor: Tensor, before: Tensor) -> bool:
    return torch.equal(tensor.detach(), before)


def show(measured: Audit) -> Evidence:
    """Return the table of parameters."""
    moving = [p for p in measured.parameters if p.moved_at is not None]
    return Evidence(
        what=f"{len(measured.parameters)} parameters over the first {measured.steps} steps of the run",
        outcome=measured.outcome,
        said=f"{len(moving)} of {len(measured.parameters)} parameters move in {measured.steps} steps",
        figures={
            "optimizer": measured.optimizer,
            "parameters that move": f"{len(moving)} of {len(measured.parameters)}",
            "parameters in no group": sum(p.group is None for p in measured.parameters),
            "parameters not trainable": sum(not p.trainable for p in measured.parameters),
            "tensors of the optimizer that are no parameter": measured.strangers,
        },
        tables=(
            Table(
                caption="Parameters",
                columns=(
                    "parameter", "shape", "trainable", "group", "lr", "weight decay", "first moved at step",
                    "entries moved",
                ),
                rows=tuple(
                    (
                        p.name, "x".join(map(str, p.shape)), p.trainable, p.group, p.lr, p.weight_decay,
                        p.moved_at, p.entries_moved,
                    )
                    for p in measured.parameters
                ),
            ),
        ),
    )  # fmt: skip
