"""The inputs of a network have a common scale, and the examples of a batch differ."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import ModelCall
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.trees import tensors

# figure                            | healthy  | broken         | bound
# largest size of an input value    | below 30 | 255 for images | LARGE 100
# spread in evaluations over training, or its inverse | below 2 | 4 for unscaled images | OTHER 3
# difference of the means over the larger spread       | below 1 | 2                     | APART 1.5
# largest difference of the standardized quantiles     | any     | below 0.1             | ALIKE 0.25
# In 62 evaluations of 48 corrected scripts of strangers, the spread differed by at most 1.5, the means by at most 0.2.
LARGE, OTHER, APART, ALIKE = 100.0, 3.0, 1.5, 0.25
_UPDATES, _LEAST = 3, 4
_BATCHES, _PER_MODE = 8, 2
_EXAMPLES, _TIMES, _EXACT = 8, 3, 1e-3  # of batches that may be standardized by their own statistics


class Inputs(Check):
    """Input values have a size near 1, in evaluations as in training, and the examples of a batch are not all equal.

    Source: Y. LeCun et al., "Efficient BackProp" (1998), section 4.3.
    """

    name = "inputs"
    question = "Are inputs scaled, and do the examples of a batch differ?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "large": Outcome(
            "advice",
            "The inputs of the network have large values.",
            "Scale them to mean 0 and deviation 1, with the statistics of the training examples.",
            "unnormalized_input",
        ),
        "equal": Outcome(
            "advice",
            "All examples of a batch are equal.",
            "Look at how examples are read, and at the index of the data set.",
            "blank_pixels",
        ),
        "own-statistics": Outcome(
            "advice",
            "Each batch of an evaluation is standardized with its own mean and deviation, unlike the training batches.",
            "Keep the mean and the deviation of the training examples, and use them everywhere.",
            "split_norm_mismatch",
        ),
        "other-in-evaluation": Outcome(
            "advice",
            "The network gets inputs of another scale in evaluations than in training.",
            "Prepare training and validation examples with the same code and the same statistics.",
            "split_norm_mismatch",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._standard: dict[Place | None, list[bool]] = {}  # by place, whether each batch has mean 0 and deviation 1
        # By the shape of an example, and the place of an evaluation or None in training: mean, spread and standardized
        # quantiles of each batch.
        self._scales: dict[tuple[tuple[int, ...], Place | None], list[Tensor]] = {}

    def on_call(self, call: ModelCall) -> None:
        """Look at the first inputs."""
        self._note_scale(call)
        if not call.with_gradients or self.watch.step >= _UPDATES:
            return
        name = type(call.network).__name__
        for tensor in tensors((call.args, call.kwargs)):
            if tensor.layout is not torch.strided or tensor.requires_grad or not tensor.numel():
                continue
            if not tensor.is_floating_point() or tensor.dim() < 2:
                continue
            size = float(tensor.abs().max())
            if LARGE < size < float("inf"):
                self.tell("large", f"{name} gets values up to {size:.3g}", call.place)
            if _are_equal(tensor):
                self.tell("equal", f"{name} gets {tensor.size(0)} equal examples", call.place)

    def _note_scale(self, call: ModelCall) -> None:
        """Note mean and spread of a batch."""
        given = next((one for one in tensors((call.args, call.kwargs)) if one.dim() > 1), None)
        if given is None or not given.is_floating_point():
            return
        shape = tuple(given.shape[1:])  # not the network: an average of it may be evaluated
        scales = self._scales.setdefault((shape, None if call.with_gradients else call.place), [])
        if len(scales) >= _BATCHES or given.layout is not torch.strided or given.numel() <= _LEAST:
            return
        scales.append(_scale_of(given))
        if given.dim() == 2 and given.size(0) >= _EXAMPLES:
            self._standard.setdefault(None if call.with_gradients else call.place, []).append(_is_standard(given))

    def at_end(self) -> None:
        """Compare training with each place of an evaluation."""
        for place, found in self._standard.items():
            if place is not None and len(found) >= _TIMES and all(found) and not all(self._standard.get(None, [True])):
                self.tell("own-statistics", f"{len(found)} batches with a mean of 0 and a deviation of 1", place)
        for (shape, place), evaluation in self._scales.items():
            training = self._scales.get((shape, None), [])
            if place is None or len(training) < _PER_MODE or len(evaluation) < _PER_MODE:
                continue
            own, other = (torch.stack(found).median(0).values for found in (training, evaluation))
            (mean, spread), (other_mean, other_spread) = own[:2].tolist(), other[:2].tolist()
            if not 0 < spread < float("inf") or not 0 < other_spread < float("inf"):
                continue
            factor = max(spread / other_spread, other_spread / spread)
            apart = abs(mean - other_mean) / max(spread, other_spread)
            # Other preparation moves and stretches values. The values of a later time may have another distribution.
            alike = float((own[2:] - other[2:]).abs().max()) < ALIKE
            if alike and (factor > OTHER or apart > APART):
                text = f"mean {mean:.3g}, spread {spread:.3g} in training; {other_mean:.3g} and {other_spread:.3g} here"
                self.tell("other-in-evaluation", text, place)


def _scale_of(tensor: Tensor) -> Tensor:
    """Return mean, spread and nine standardized quantiles of at most 10,000 values."""
    values = tensor.detach().float().flatten()
    values = values[:: max(1, values.numel() // 10_000)]
    mean, spread = values.mean(), values.std()
    quantiles = (values.quantile(torch.linspace(0.1, 0.9, 9, device=values.device)) - mean) / spread
    return torch.cat([torch.stack([mean, spread]), quantiles]).cpu()


def _is_standard(table: Tensor) -> bool:
    """Return whether each column that varies has mean 0 and deviation 1."""
    values = table.detach().float()
    means, deviations = values.mean(0), values.std(0, correction=0)
    varies = deviations > _EXACT
    is_standard = (means.abs() < _EXACT) & ((deviations - 1).abs() < _EXACT * values.size(0))
    return bool(varies.any()) and bool(is_standard[varies].all())


def _are_equal(tensor: Tensor) -> bool:
    """Return whether all rows are equal, but not all entries."""
    if tensor.size(0) < _LEAST or tensor[0].numel() < 2:
        return False
    return bool((tensor == tensor[:1]).all()) and not bool((tensor == tensor.flatten()[0]).all())
