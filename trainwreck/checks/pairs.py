"""Transforms treat an image and its mask alike, and make two different views of an example."""

from collections.abc import Generator
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import BackwardPass, LossCall, ModelCall
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.trees import tensors
from trainwreck.trial import Probe

# figure (a script of tests/test_watch_checks.py, ten seeds)         | healthy   | broken       | bound
# correlation of image and mask at the best shift or flip            | 0.79      | 0.79         | CLEAR 0.3
# the same without a shift, over the best one                        | 1.00      | 0.07 to 0.64 | APART 0.8
# share of clear examples whose best place is elsewhere: shifts      | 0         | 1            | MOST 0.2
# the same, flips of ellipses (another script, five seeds)           | 0         | 0.42 to 0.75 |
# smallest distance of two columns over the median (ten seeds)       | 0.41 to 0.48 | the same     | GAP 0.25
# share of the rarer order of two columns                            | 0            | 0.46 to 0.50 | BOTH 0.15
# GAP is an estimate: positions that come in both orders on purpose, such as two points, come close to each other.
CLEAR, APART, MOST = 0.3, 0.8, 0.2
GAP, BOTH = 0.25, 0.15
_ROWS, _MOST_ROWS, _COLUMNS = 96, 512, 64
_EXAMPLES, _LEAST, _SIDE = 24, 8, 8
_IMAGE_DIMS, _MAP_DIMS, _CLASSES = 4, 3, 8
_CALLS, _PASSES = 6, 3
_VIEWS = 2  # calls of a network in one update
_TRANSFORMS = "the transforms of the training data"
_READINGS = 4  # of each example, at most
_FLIPPED, _LIKE = 0.9, 0.7  # correlations of two readings of an image: with a flip, and without
_RELATED = 0.4  # correlation of the distances of image and position from the middle, over the examples


class Pairs(Check):
    """An image and its target of the same size lie upon each other: no shift or flip makes them fit much better.

    The inputs of two calls before one backward pass differ.
    A child reads examples of the training data, and correlates each image with its target at all shifts and flips.
    Where images and targets have little in common, the check says nothing.
    """

    name = "pairs"
    question = "Do transforms treat an image and its mask alike?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "apart": Outcome(
            "advice",
            "Images and their targets fit better after a shift or a flip that differs from example to example.",
            "Draw the random numbers of a transform once, and use them for the image and for its target.",
            "mask_not_flipped",
        ),
        "two-orders": Outcome(
            "advice",
            "Two positions in the targets keep a distance, but their order changes from example to example.",
            "If they are corners of a box, or the left and right of something, a flip must exchange them.",
        ),
        "positions-stay": Outcome(
            "advice",
            "A transform flips images, but the positions in their targets stay where they were.",
            "Give the transform the image and its positions, and return the flipped ones.",
        ),
        "equal-views": Outcome(
            "advice",
            "Two calls of a network get the same inputs before one backward pass, so they give the same outputs.",
            "Give the second call the second view. If you need the outputs twice, call the network once.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._equal = 0
        self._seen: list[ModelCall] = []  # the calls before the previous pass
        # By loss and dimension, positions (N, C) in the targets of images.
        self._positions: dict[tuple[Place, int], list[Tensor]] = {}
        self._random: set[int] = set()  # networks that call dropout as a function

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Note a network that calls dropout."""
        if name == "dropout" and self.watch.inside is not None:
            self._random.add(id(self.watch.inside.network))

    def on_loss(self, loss: LossCall) -> None:
        """Note positions in the targets of images."""
        if not loss.with_gradients or loss.call is None:
            return
        given = next(tensors((loss.call.args, loss.call.kwargs)), None)
        if given is None or given.dim() != _IMAGE_DIMS or not loss.targets.dim():
            return
        if (
            loss.targets.size(0) != given.size(0)
            or sum(map(len, self._positions.get((loss.place, 0), ()))) > _MOST_ROWS
        ):
            return
        for dim, found in enumerate(_positions_in(loss.targets.detach())):
            rows = self._positions.setdefault((loss.place, dim), [])
            if not rows or rows[0].shape[1:] == found.shape[1:]:
                rows.append(found)

    def at_end(self) -> None:
        """Look for two positions that are never close to each other, and come in both orders."""
        for (place, _), rows in self._positions.items():
            table = torch.cat(rows)
            for one in range(table.size(1)):
                for other in range(one):
                    apart = _finite(table[:, one] - table[:, other])  # an image may lack a class
                    if len(apart) < _ROWS:
                        continue
                    before = float((apart < 0).float().mean())
                    if min(before, 1 - before) > BOTH and apart.abs().min() > GAP * apart.abs().median():
                        text = f"positions {other} and {one}: {before:.0%} of {len(apart)} in the other order"
                        self.tell("two-orders", text, place)

    def before_backward(self, backward: BackwardPass) -> None:
        """Compare the inputs of the calls that the pass follows. A network with dropout gives other outputs."""
        if self._equal >= _PASSES:
            return
        calls, self._seen = [call for call in self.watch.calls if call not in self._seen], self.watch.calls
        for one, other in pairwise(calls[-_CALLS:]):
            if sum(call.network is other.network for call in calls) > _VIEWS:
                continue  # as in Q-learning, which calls a network for several reasons
            if one.network is other.network and _have_equal_inputs(one, other) and not self._is_random(other):
                self._equal += 1
                if self._equal == _PASSES:
                    text = f"{type(other.network).__name__}, before {_PASSES} backward passes"
                    self.tell("equal-views", text, other.place)
                return

    def _is_random(self, call: ModelCall) -> bool:
        layers = (module for module in call.network.modules() if isinstance(module, nn.modules.dropout._DropoutNd))
        return id(call.network) in self._random or any(layer.p > 0 for layer in layers)

    def trials(self) -> Generator[Probe, Any, None]:
        """Probe the data sets that were trained on."""
        for use in self.watch.loaders.values():
            if use.training and _are_images(use.last):
                found = yield lambda use=use: _count_apart(use.loader.dataset)  # type: ignore[misc]
                if found and found[1] >= _LEAST and found[0] > MOST * found[1]:
                    text = f"{found[0]} of {found[1]} examples"
                    self.tell("apart", text, _TRANSFORMS)
            elif use.training and _have_positions(use.last):
                found = yield lambda use=use: _count_still(use.loader.dataset)  # type: ignore[misc]
                if found and found >= _LEAST:
                    text = f"{found} examples, whose image was flipped from one reading to the next"
                    self.tell("positions-stay", text, _TRANSFORMS)


def _positions_in(targets: Tensor) -> list[Tensor]:
    """Return tables (N, C) of numbers that may be positions. Numbers of different tables cannot be compared.

    They are the numbers of each target; or the columns, and the rows, of the centres of classes in a map. Other targets
    have no table. A class that an image lacks has no centre, which is not a number.
    """
    if targets.is_floating_point():
        if not 1 < targets[0].numel() <= _COLUMNS:
            return []
        flat = targets.flatten(1).float().cpu()
        return [flat] if flat.unique().numel() > flat.size(0) else []
    if targets.dim() != _MAP_DIMS or targets.size(-1) < _SIDE:
        return []
    step = 1 + max(targets.shape[-2:]) // _COLUMNS  # so that a copy for each class needs little memory
    targets = targets[:, ::step, ::step]
    masks = torch.stack([targets == value for value in range(_CLASSES)], 1).float().cpu()
    height, width = masks.shape[-2:]
    total = masks.sum((-2, -1))
    total[:, total.sum(0).argmax()] = torch.nan  # the background, whose centre only tells where the other classes are
    rows = (masks.sum(-1) * torch.arange(height)).sum(-1) / total
    columns = (masks.sum(-2) * torch.arange(width)).sum(-1) / total
    return [columns, rows]


def _finite(values: Tensor) -> Tensor:
    return values[values.isfinite()]


def _have_equal_inputs(one: ModelCall, other: ModelCall) -> bool:
    first, second = list(tensors((one.args, one.kwargs))), list(tensors((other.args, other.kwargs)))
    if not first or len(first) != len(second) or first[0].dim() < 2 or first[0].size(0) < 2:
        return False
    return all(
        a.shape == b.shape and a.requires_grad == b.requires_grad and (a is b or torch.equal(a, b))
        for a, b in zip(first, second, strict=True)
    )


def _are_images(batch: Any) -> bool:
    if not isinstance(batch, tuple | list) or len(batch) != 2 or not all(isinstance(one, Tensor) for one in batch):
        return False
    images, masks = batch
    return (
        images.dim() == 4
        and masks.dim() in (3, 4)
        and images.shape[-2:] == masks.shape[-2:]
        and images.size(-1) >= _SIDE
    )


def _have_positions(batch: Any) -> bool:
    """Return whether a batch has images (N, C, H, W) and for each a few numbers that are not whole, such as points."""
    if not isinstance(batch, tuple | list) or len(batch) != 2 or not all(isinstance(one, Tensor) for one in batch):
        return False
    images, targets = batch
    are_images = images.dim() == _IMAGE_DIMS and images.size(0) == len(targets) and images.size(-1) >= _SIDE
    return are_images and targets.dim() > 1 and bool(_positions_in(targets))


def _count_still(data: Any) -> int:
    """Return how many of the first examples have positions that stay while the image is flipped.

    Return 0 if no number of the targets goes with the place of the bright or dark parts of its image: it is no position
    then, but something that a flip does not change.
    """
    flips: dict[int, int] = {-1: 0, -2: 0}  # by dimension of the image
    centres: dict[int, list[Tensor]] = {-1: [], -2: []}
    targets: list[Tensor] = []
    for index in range(min(_ROWS, len(data))):
        image, target = data[index][:2]
        first, values = _normal(image), torch.as_tensor(target).flatten()
        if first is None:
            continue
        targets.append(values)
        for dim, found in centres.items():
            found.append(_centre_of(first, dim))
        for again, other in (data[index][:2] for _ in range(_READINGS if index < _EXAMPLES else 0)):
            second = _normal(again)
            if second is None or second.shape != first.shape or float((first * second).sum()) > _LIKE:
                continue
            turned = [dim for dim in flips if float((first * second.flip(dim)).sum()) > _FLIPPED]
            if turned and torch.equal(torch.as_tensor(other).flatten(), values):
                flips[turned[0]] += 1
                break
    if len(targets) < _EXAMPLES:
        return 0
    table = torch.stack(targets).float()
    return sum(count for dim, count in flips.items() if _is_related(torch.stack(centres[dim]), table))


def _centre_of(image: Tensor, dim: int) -> Tensor:
    """Return the centre of the parts of an image that differ most from its mean, from -1 to 1 along a dimension."""
    weights = image.square().square().sum(-2 if dim == -1 else -1)
    return (weights * torch.linspace(-1, 1, weights.numel())).sum() / weights.sum()


def _is_related(centres: Tensor, table: Tensor) -> bool:
    """Return whether the distance of a column from its middle goes with the distance of the centres from the middle.

    A flip does not change either distance. Means of all columns, and of every other one, count as columns.
    """
    means = [part.mean(1, keepdim=True) for part in (table, table[:, ::2], table[:, 1::2])]
    table = torch.cat([table, *means], 1)
    middle = (table.amax(0) + table.amin(0)) / 2
    distances = torch.cat([centres.abs()[:, None], (table - middle).abs()], 1)
    related = torch.corrcoef(distances.T)[0, 1:].nan_to_num(0.0)
    return bool((related > _RELATED).any())


def _count_apart(data: Any) -> tuple[int, int]:
    """Return the number of examples that fit elsewhere, and of all whose image and target have much in common."""
    apart = clear = 0
    for index in range(min(_EXAMPLES, len(data))):
        image, mask = data[index][:2]
        one, other = _normal(image), _normal(mask)
        if one is None or other is None or one.shape != other.shape:
            continue
        own, best = _fits(one, other)
        if best > CLEAR:
            clear += 1
            apart += own < APART * best
    return apart, clear


def _normal(values: Any) -> Tensor | None:
    """Return an image (H, W) with mean 0 and length 1: the mean over its channels. Return None for a constant one."""
    values = torch.as_tensor(values) if hasattr(values, "__array_interface__") else values
    if not isinstance(values, Tensor) or values.dim() not in (2, 3):
        return None
    flat = values.float().mean(0) if values.dim() == 3 else values.float()
    flat = flat - flat.mean()
    length = flat.norm()
    return flat / length if float(length) > 0 else None


def _fits(one: Tensor, other: Tensor) -> tuple[float, float]:
    """Return the largest correlation within a pixel of the same place, and that at any shift or flip, as sizes."""
    spectrum = torch.fft.rfft2(one)
    found = []
    for dims in ([], [0], [1], [0, 1]):
        turned = other.flip(dims) if dims else other
        found.append(torch.fft.irfft2(spectrum * torch.fft.rfft2(turned).conj(), s=one.shape).abs())
    own = found[0].roll((1, 1), (0, 1))[:3, :3].max()
    return float(own), max(float(values.max()) for values in found)
