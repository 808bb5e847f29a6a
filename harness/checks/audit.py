"""Make six updates, and show for each parameter: is it trainable, which optimizer group holds it, and did it change?

A parameter without a group is in no optimizer. If a parameter does not change, either it gets no gradient or its
learning rate is zero. A learning rate counts as zero if it is below a thousandth of the largest learning rate. Three
kinds of parameters need not change:

- Frozen parameters. The constant FROZEN lists how their names start, for example `FROZEN = ("trunk.",)`. They must not
change, and buffers whose names start in the same way (the statistics of batch norm) must not change either.

- Parameters that require no gradient and are in no optimizer, such as the pretrained weights to which an adapter is
added.

- Parameters that cannot affect the outputs. For example, batch norm subtracts the mean, so a bias right before batch
norm has no effect, and its gradient consists of rounding errors.

If the loss depends on a trainable tensor that is in neither the network nor the optimizer, a layer is not registered,
for example because it is in a plain list instead of `nn.ModuleList`.
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, Table
from harness.checks.core.subject import Gradients, Subject, Trial, leaves_of, used_gradients
from harness.run.experiment import disable_dropout

# figure                                    | healthy | broken  | bound           | source
# updates until every parameter has changed | <= 3    |         | UPDATES 6       | zeros behind a layer delay it
# learning rate / largest learning rate     | >= 0.01 |         | TOKEN_RATE 1e-3 | fine-tuning uses 0.1 or 0.01
# effect of a parameter on the outputs      | >= 0.2  | <= 5e-7 | NO_EFFECT 1e-3  | measured on ten experiments
#
# To measure the effect of a parameter, the check adds random noise with the size of its largest entry (at least 1). The
# effect is the change of the outputs, divided by the differences of the outputs between examples. It is below the bound
# for biases before batch norm and for biases of attention keys, so these parameters need not change.
UPDATES = 6
MOST_ACCUMULATED = 8  # an update may accumulate the gradients of this many batches
TOKEN_RATE = 1e-3
NO_EFFECT = 1e-3


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run, and compare the values of each parameter before and after these steps."""
    trial = subject.trial()
    named = dict(trial.model.named_parameters(remove_duplicate=False))
    numbered = enumerate(trial.optimizer.param_groups)
    groups = {id(tensor): index for index, group in numbered for tensor in group["params"]}
    # A schedule may already have changed the learning rate that `build_optimizer` set.
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
        f"{moving} parameters change in {UPDATES} updates"
        + (f", and so do {len(frozen_moves)} frozen ones" if frozen_moves else "")
        + (f"; the loss depends on {strangers} tensors outside the network" if strangers else ""),
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
    """Yield batches until the optimizer has made UPDATES updates; add each gradient with a non-zero entry to `seen`."""
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
    """Return whether strong noise on a parameter (see NO_EFFECT) hardly changes the outputs in training mode."""
    model = copy.deepcopy(trial.model).train()
    disable_dropout(model)
    before = model(inputs)
    parameter = model.get_parameter(name)
    noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)).to(parameter)
    parameter.add_(noise * max(float(parameter.abs().max()), 1.0))
    return float((model(inputs) - before).norm()) <= NO_EFFECT * float((before - before.mean(dim=0)).norm())


def _count_unregistered(trial: Trial) -> int:
    """Return how many leaf tensors the loss depends on that are in neither the network nor the optimizer."""
    inputs, labels = next(trial.batches())
    held = {id(tensor) for tensor in trial.model.parameters()}
    held |= {id(tensor) for group in trial.optimizer.param_groups for tensor in group["params"]}
    leaves = leaves_of(trial.experiment.compute_loss(trial.model.train()(inputs), labels))
    return len({id(leaf) for leaf in leaves} - held)
