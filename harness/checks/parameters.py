"""Compare three sets of tensors: the network's parameters, the optimizer's tensors, and the tensors with a gradient.

In a correct training, the three sets are equal. Several faults look alike in the loss, but make two of the sets differ:
a layer is replaced after the optimizer was built, the optimizer belongs to another network, a part of the network is in
a plain list, or a `.detach()` cuts the network in the middle. Parameters that require no gradient are frozen on
purpose, so the other two sets need not contain them. A gradient counts if a step of the run computes it, even if
something clears it before the update.

The check has no threshold: two sets are either equal or not.
"""

from harness.checks.core.finding import Finding, Table
from harness.checks.core.subject import Subject, fresh_gradients, leaves_of

STEPS = 4  # more than one, because a network may skip a layer at random


def measure(subject: Subject) -> Finding:
    """Collect the tensors of network, optimizer and gradients in some steps of the run, and compare the sets."""
    trial = subject.trial()
    trained = (item for item in trial.model.named_parameters() if item[1].requires_grad)
    # Frozen parameters need no optimizer, even if they require a gradient.
    named = {name: tensor for name, tensor in trained if not name.startswith(trial.experiment.frozen)}
    own = {id(tensor) for tensor in trial.model.parameters()}
    held = {id(tensor) for group in trial.optimizer.param_groups for tensor in group["params"]}
    outputs = trial.model.train()(next(trial.batches())[0])
    strangers = [tensor for tensor in leaves_of(outputs) if id(tensor) not in own]
    reached: set[str] = set()
    for batch in trial.batches(STEPS):
        with fresh_gradients(trial.model) as gradients:
            trial.step(*batch)
        reached |= set(gradients)
    missing = [name for name, tensor in named.items() if id(tensor) not in held]
    unreached = [name for name in named if name not in reached]
    if held - own:
        outcome = "foreign"
    elif strangers:
        outcome = "unregistered"
    elif missing:
        outcome = "missing"
    else:
        outcome = "unreached" if unreached else "same"
    more = ""
    if outcome == "foreign":
        more = f"; it also holds {len(held - own)} tensors outside of the network"
    elif outcome == "unregistered":
        more = f"; the outputs also depend on {len(strangers)} tensors outside of the network"
    rows = tuple((n, "x".join(map(str, p.shape)), id(p) in held, n in reached) for n, p in named.items())
    return Finding(
        outcome,
        f"of {len(named)} trainable parameters, the optimizer holds {len(named) - len(missing)}"
        f" and {len(named) - len(unreached)} get a gradient{more}",
        {
            "trainable parameters": len(named),
            "not in the optimizer": len(missing),
            "without a gradient": len(unreached),
            "tensors of the optimizer outside of the network": len(held - own),
            "tensors that outputs depend on, outside of the network": len(strangers),
        },
        tables=(Table("Trainable parameters", ("parameter", "shape", "in the optimizer", "gets a gradient"), rows),),
    )
