"""The processes of a distributed training keep equal weights, and share the examples."""

from typing import Any, ClassVar

import torch
import torch.distributed as dist

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, LossCall
from trainwreck.finding import Outcome
from trainwreck.state import parameters_of
from trainwreck.trees import checksum, tensors

_UPDATES = 5  # the first ones are enough
_LEAST_LABELS = 8


class Replicas(Check):
    """After an update all processes have equal weights, and each of them has seen other examples."""

    name = "replicas"
    question = "Do the processes keep equal weights, and share the examples?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "drift": Outcome(
            "alarm",
            "The processes have different weights after an update.",
            "Wrap the network in DistributedDataParallel, call the wrapper, and begin with equal weights.",
            "around_the_wrapper",
        ),
        "same-examples": Outcome(
            "alarm",
            "All processes get the same examples.",
            "Use a DistributedSampler, or give each process its own part.",
        ),
        "same-labels": Outcome(
            "advice",
            "All processes get other inputs with the same labels, as from one example that is augmented twice.",
            "Give DistributedSampler the rank of each process, and leave out `rank` if in doubt.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._same = self._same_labels = 0
        self._labels = float("nan")  # a sum over the labels of the latest loss in their order, or NaN

    def on_loss(self, loss: LossCall) -> None:
        """Note the labels of a training loss."""
        if self.watch.step >= _UPDATES or not loss.with_gradients:
            return
        flat = loss.targets.detach().flatten()
        varies = flat.numel() >= _LEAST_LABELS and bool((flat != flat[0]).any())
        self._labels = float(checksum(flat)) if varies else float("nan")

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Compare sums of the weights and of the inputs across processes."""
        if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() < 2:
            return
        if self.watch.step >= _UPDATES or not self.watch.calls:
            return
        call = self.watch.calls[-1]
        inputs = [checksum(one) for one in tensors((call.args, call.kwargs))]
        weights = [one.detach().double() for one in parameters_of(optimizer)]
        device = weights[0].device
        zero = torch.zeros((), dtype=torch.double, device=device)
        sums = [sum((one.sum() for one in weights), zero), sum((one.square().sum() for one in weights), zero)]
        mine = torch.stack([*sums, sum((one.to(device) for one in inputs), zero), zero + self._labels])
        everyone = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, mine)
        if any(not torch.equal(one[:2], everyone[0][:2]) for one in everyone):
            place = self.watch.backwards[-1].place if self.watch.backwards else None
            self.tell("drift", f"sums of the weights: {[round(float(one[0]), 6) for one in everyone]}", place)
        if inputs and all(torch.equal(one[2], everyone[0][2]) for one in everyone):
            self._same += 1
            if self._same == 2:
                self.tell("same-examples", f"equal inputs on {len(everyone)} processes, twice", call.place)
        elif all(torch.equal(one[3], everyone[0][3]) for one in everyone):  # NaN equals nothing
            self._same_labels += 1
            if self._same_labels == 3:
                self.tell("same-labels", f"equal labels on {len(everyone)} processes, three times", call.place)
