"""Makes six updates and looks at each parameter: is it trainable, which optimizer group holds it, did it move?

A parameter without a group is in no optimizer; a parameter that does not move got no gradient, or a rate of zero. One
whose rate is a token, below a thousandth of the largest, counts as at rest. Those whose names begin with an entry of
the constant FROZEN, such as `FROZEN = ("trunk.",)`, are meant to rest, and so are their buffers: batch norm's
statistics. So are those that require no gradient and that no optimizer holds, as the base of an adapter, and those that
cannot matter: batch norm takes the mean away, so a bias before it has a gradient of rounding errors alone. A tensor
that the loss needs the gradient of, and that belongs neither to the network nor to the optimizer, is a layer that is
not registered: in a list, say, where `nn.ModuleList` belongs.

Source of the six updates: a layer behind one that begins at zero waits a step for its gradient; the healthy experiments
have moved every parameter within three steps. An update may take the gradients of eight batches. Fine-tuning gives
early layers a tenth or a hundredth of the rate, seldom a thousandth (0.001). A bias before batch norm, or of
attention's keys, that is moved by its own size changes the outputs by at most 5e-7 of their spread; over ten
experiments and their norms, a parameter that matters changes them by 0.2 and more (0.001).
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, Table
from harness.checks.core.subject import Gradients, Subject, Trial, leaves_of, used_gradients
from harness.run.experiment import disable_dropout

UPDATES = 6
MOST_ACCUMULATED = 8  # batches for one update
TOKEN_RATE = 1e-3
NO_EFFECT = 1e-3


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run and see which parameters they move."""
    trial = subject.trial()
    named = dict(trial.model.named_parameters(remove_duplicate=False))
    numbered = enumerate(trial.optimizer.param_groups)
    groups = {id(tensor): index for index, group in numbered for tensor in group["params"]}
    # A schedule may have moved the rate that `build_optimizer` gave.
    rates = [float(group.get("initial_lr", group["lr"])) for group in trial.optimizer.param_groups]
    tokens = {index for index, rate in enumerate(rates) if rate < TOKEN_RATE * max(rates)}
    resting = trial.experiment.frozen
    buffers = {name: buffer for name, buffer in trial.model.named_buffers() if name.startswith(resting)}
    watched = named | buffers
    start = {name: tensor.detach().clone() for name, tensor in watched.items()}
    strangers = _count_unregistered(subject.trial())
    moved_at: dict[str, int] = {}
    seen: Gradients = {}
    for index, batch in enumerate(_until_updated(trial, seen)):
        trial.step(*batch)
        for name, tensor in watched.items():
            token = groups.get(id(tensor)) in tokens and not name.startswith(resting)
            if name not in moved_at and not token and not torch.equal(tensor.detach(), start[name]):
                moved_at[name] = index
    frozen_moves = sorted(name for name in moved_at if name.startswith(resting))
    trained = [name for name, tensor in named.items() if tensor.requires_grad or id(tensor) in groups]
    free = [name for name in trained if not name.startswith(resting)]
    free = [name for name in free if name in moved_at or not (name in seen and _has_no_effect(trial, name, batch[0]))]
    moved = sum(name in moved_at for name in free)
    if not moved:
        outcome = "none-moves"
    elif moved < len(free):
        outcome = "some-rest"
    elif frozen_moves:
        outcome = "frozen-moves"
    else:
        outcome = "unregistered" if strangers else "all-move"
    moving = f"{moved} of {len(free)}"
    rows = []
    for name, tensor in named.items():
        group = groups.get(id(tensor))
        shape = "x".join(map(str, tensor.shape))
        rate = None if group is None else rates[group]
        share = float((tensor.detach() != start[name]).double().mean()) if tensor.numel() else 0.0
        rows.append((name, shape, tensor.requires_grad, group, rate, moved_at.get(name), share))
    columns = "parameter", "shape", "trainable", "group", "lr", "moved at step", "moved"
    return Finding(
        outcome,
        f"{moving} parameters move in {UPDATES} updates"
        + (f", and {len(frozen_moves)} that should rest" if frozen_moves else "")
        + (f"; the loss needs {strangers} tensors that the network does not hold" if strangers else ""),
        {
            "optimizer": type(trial.optimizer).__name__,
            "parameters that move": moving,
            "meant to rest": len(named) - len(free),
            "meant to rest, but moving": ", ".join(frozen_moves) or None,
            "tensors of the loss in neither network nor optimizer": strangers,
            "parameters in no group": sum(id(tensor) not in groups for tensor in named.values()),
            "parameters not trainable": sum(not tensor.requires_grad for tensor in named.values()),
            "tensors of the optimizer that are no parameter": len(set(groups) - set(map(id, named.values()))),
        },
        tables=(Table("Parameters", columns, tuple(rows)),),
    )


def _until_updated(trial: Trial, seen: Gradients) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches until the optimizer has made the updates; note the gradients that are not all zero."""
    updates = 0
    with used_gradients(trial.model) as used:
        for batch in trial.batches(UPDATES * MOST_ACCUMULATED):
            used.clear()
            yield batch
            seen |= {name: gradient for name, gradient in used.items() if bool(gradient.any())}
            updates += bool(used)
            if updates == UPDATES:
                return


@torch.no_grad()
def _has_no_effect(trial: Trial, name: str, inputs: Tensor) -> bool:
    """Return whether the outputs in training mode stay as they are if a parameter moves by its own size, or by 1."""
    model = copy.deepcopy(trial.model).train()
    disable_dropout(model)
    before = model(inputs)
    parameter = model.get_parameter(name)
    noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)).to(parameter)
    parameter.add_(noise * max(float(parameter.abs().max()), 1.0))
    return float((model(inputs) - before).norm()) <= NO_EFFECT * float((before - before.mean(dim=0)).norm())


def _count_unregistered(trial: Trial) -> int:
    """Return how many tensors the loss needs a gradient of that neither the network nor the optimizer holds."""
    inputs, labels = next(trial.batches())
    held = {id(tensor) for tensor in trial.model.parameters()}
    held |= {id(tensor) for group in trial.optimizer.param_groups for tensor in group["params"]}
    leaves = leaves_of(trial.experiment.compute_loss(trial.model.train()(inputs), labels))
    return len({id(leaf) for leaf in leaves} - held)
