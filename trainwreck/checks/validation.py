"""Validation has other examples than training, and the same ones each time."""

import hashlib
import time
import weakref
from collections import Counter, deque
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.data import Sampler, Subset

from trainwreck.check import Check
from trainwreck.events import LoaderUse, LossCall, ModelCall
from trainwreck.finding import Outcome
from trainwreck.patience import patient
from trainwreck.places import Place
from trainwreck.trees import clone, tensor_bytes, tensors
from trainwreck.trial import Probe

# figure                                                     | healthy    | broken | bound
# share of validation examples that are training examples    | below 0.01 | > 0.02 | SOME 0.02
# the same, from which it is no chance and no duplicate      | below 0.2  | > 0.9  | MOST 0.5
# share of windows that share half of their values with training (ten seeds) | 0 | 1 | WINDOWS 0.5
SOME, MOST = 0.02, 0.5
WINDOWS = 0.5
_EXAMPLES, _AGAIN, _TRAINING = 300, 20, 4000
_WINDOWS, _LEAST = 60, 4
_SECONDS = patient(4.0)
ALL = 0.95  # of the examples of an evaluation, from which it is one of the training data
_ROWS, _CALLS, _MOST_VALUES = 50_000, 10, 2_000_000


class Validation(Check):
    """The examples of validation are not among those of training, and an evaluation gives the same outputs twice.

    A child reads examples of the data sets, and calls each evaluated network twice.
    """

    name = "validation"
    question = "Does validation have other examples than training, and the same ones each time?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "same-examples": Outcome(
            "alarm",
            "Most examples of validation are also examples of training.",
            "Split the data once, and make each data set from its own part.",
            "split_contamination",
        ),
        "shared-examples": Outcome(
            "advice",
            "Some examples of validation are also examples of training.",
            "Look for duplicates before the split, and for parts of the data that overlap.",
            "oversampled_before_split",
        ),
        "shared-windows": Outcome(
            "advice",
            "Most windows of the validation series overlap windows of training.",
            "Split the series by time first, and cut each part into windows.",
            "temporal_leakage",
        ),
        "loss-on-all": Outcome(
            "advice",
            "The loss takes the labels of all examples, also of those that an evaluation selects.",
            "Select the examples of training before the loss, for example with loss(out[train_mask], y[train_mask]).",
        ),
        "shared-transform": Outcome(
            "advice",
            "Training and validation share a data set, and its transform is replaced, so both use the last one.",
            "Make two data sets, each with its own transform, and take one part of each.",
        ),
        "random-examples": Outcome(
            "advice",
            "An example of validation changes from one reading to the next.",
            "Remove random transforms from the validation data.",
            "augmented_validation",
        ),
        "random-outputs": Outcome(
            "advice",
            "A network in eval mode gives other outputs for the same inputs.",
            "Look for dropout, noise or sampling that ignores eval mode.",
            "dropout_never_off",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._trained: set[bytes | None] = set()  # digests of the examples of training that no loader reads
        self._evaluated: dict[Place, list[list[bytes]]] = {}  # by place, the examples of each call
        self._rows = 0  # all examples that were noted
        self._inputs: dict[int, Tensor] = {}  # by network, the first input of the latest call with gradients
        self._whole = False  # a network gets the same tensor for each update
        # Of the latest loss with gradients: the targets, the label that it ignores, and the place.
        self._loss: tuple[weakref.ref[Tensor], int, Place] | None = None
        # By data set, the place where its transform was replaced before it gave any example.
        self._replaced: list[tuple[Any, Place]] = []
        self._assigned: dict[tuple[int, str], tuple[Any, int]] = {}  # the transform, and the number of batches before
        self._batches = 0
        self._new: deque[float] = deque(maxlen=_CALLS)  # by call, the share of examples that were never trained on

    def on_call(self, call: ModelCall) -> None:
        """Note the examples that no loader reads."""
        given = next(tensors((call.args, call.kwargs)), None)
        if given is not None and call.with_gradients:
            self._whole |= self._inputs.get(id(call.network)) is given and self.watch.step > 0
            self._inputs[id(call.network)] = given
        if call.loaders or given is None or self._rows > _ROWS or not _is_table(given):
            return
        keys = _keys_of_rows(given)
        self._rows += len(keys)
        if call.with_gradients:
            self._new.append(sum(key not in self._trained for key in keys) / len(keys))
            self._trained.update(keys)
        elif not call.training:
            self._evaluated.setdefault(call.place, []).append(keys)

    def on_loss(self, loss: LossCall) -> None:
        """Note the targets of a loss."""
        if loss.with_gradients:
            self._loss = weakref.ref(loss.targets), int(loss.options.get("ignore_index", -100)), loss.place

    def on_batch(self, use: LoaderUse, batch: Any, number: int) -> None:
        """Count the batches."""
        self._batches += 1

    def on_transform(self, data: Any, name: str, value: Any, place: Place) -> None:
        """Note a transform that is replaced before the data set gave an example."""
        before = self._assigned.get((id(data), name))
        if before is not None and before[0] is not value and before[1] == self._batches:
            self._replaced.append((data, place))
        self._assigned[id(data), name] = value, self._batches

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Where all examples are one batch, look for an evaluation that selects some of the labels of the loss."""
        if name not in ("selection", "selected hits") or not self._whole or self._loss is None:
            return
        (ref, ignored, place), index = self._loss, args[-1]
        targets = ref()
        if targets is None or targets.dim() != 1:
            return
        if name == "selection" and (args[0].shape != targets.shape or args[0].data_ptr() != targets.data_ptr()):
            return
        if name == "selected hits" and (args[1].shape != targets.shape or targets.is_floating_point()):
            return
        selected, counted = targets[index], int((targets != ignored).sum())
        if selected.dim() and 0 < (number := int((selected != ignored).sum())) < counted:
            self.tell("loss-on-all", f"the loss takes {counted} labels, an evaluation {number} of them", place)

    def at_end(self) -> None:
        """Compare the data sets, and the examples if training has come to the same ones again."""
        uses = self.watch.loaders.values()
        trained = {id(_base_of(use.loader)) for use in uses if use.training}
        evaluated = {id(_base_of(use.loader)) for use in uses if use.evaluating and not use.training}
        for data, place in self._replaced:
            if id(data) in trained & evaluated:
                self.tell("shared-transform", f"a {type(data).__name__} of both", place)
        if len(self._new) == _CALLS and sum(self._new) < SOME * _CALLS:
            for text, place in self._shared(self._trained):
                self.tell("shared-examples", text, place)

    def _shared(self, trained: set[bytes | None]) -> Iterator[tuple[str, Place]]:
        """Yield each place that evaluates some examples of training, with the share of one call."""
        for place, calls in self._evaluated.items():
            # A function may evaluate training examples in one call, and others in the next one.
            shares = [sum(key in trained for key in keys) / len(keys) for keys in calls]
            others = [(share, len(keys)) for share, keys in zip(shares, calls, strict=True) if share < ALL]
            partly = [(share, count) for share, count in others if share > SOME]
            if sum(count for _, count in partly) >= _WINDOWS and 2 * len(partly) > len(others):
                yield f"{partly[-1][0]:.0%} of {partly[-1][1]} examples", place

    def trials(self) -> Generator[Probe, Any, None]:
        """Probe the evaluations and the data sets."""
        if self.watch.evaluations:
            found = yield lambda: [(outcome, text, vars(place)) for outcome, text, place in self._look()]
            for outcome, text, place in found or ():
                self.tell(outcome, text, Place(**place))

    def _look(self) -> Iterator[tuple[str, str, Place]]:
        for call in {id(call.network): call for call in self.watch.evaluations}.values():
            if not call.training and _differs(call):
                yield "random-outputs", f"{type(call.network).__name__}, twice the same inputs", call.place
        uses = self.watch.loaders.values()
        training = [use for use in uses if use.training]
        if self._evaluated and training:
            for text, place in self._shared(set().union(*map(_all_keys, training))):
                yield "shared-examples", text, place
        shares = []
        for use in uses:
            if use.training or not (use.evaluating or use.last is not None):
                continue
            indices = _indices_of(use.loader, _EXAMPLES)
            keys = _keys_of(use.loader.dataset, indices)
            if not keys or None in keys:
                continue
            again = _keys_of(use.loader.dataset, indices[:_AGAIN])
            if any(one != other for one, other in zip(keys, again, strict=False)):
                yield "random-examples", f"of {len(again)} examples", Place("the transform of the validation data")
                continue
            shares += [_share(keys, other) for other in training]
            if training and min(_share_of_windows(use, other) for other in training) > WINDOWS:
                yield "shared-windows", f"most of {_WINDOWS} or fewer windows", Place("where the series is split")
        if shares and min(shares)[0] > SOME:
            share, repeated = min(shares)
            # Where few different examples exist, training has many of them several times.
            outcome = "same-examples" if share > MOST and repeated < share / 2 else "shared-examples"
            yield outcome, f"{share:.0%} of the examples that were compared", Place("where the data is split")


def _base_of(loader: Any) -> Any:
    """Return the data set of a loader. For a part of a data set, return the whole one."""
    data = getattr(loader, "dataset", None)
    while isinstance(data, Subset):
        data = data.dataset
    return data


def _is_table(given: Tensor) -> bool:
    """Return whether rows are unlikely to be equal at random: most values are no whole numbers."""
    if not given.is_floating_point() or given.layout is not torch.strided or given.dim() < 2 or not given.numel():
        return False
    if given.requires_grad or given[0].numel() < _LEAST or given.numel() > _MOST_VALUES:
        return False
    return bool((given != given.round()).float().mean() > MOST)


def _keys_of_rows(given: Tensor) -> list[bytes]:
    """Return a digest of each example of a batch."""
    return [hashlib.sha256(tensor_bytes(row)).digest() for row in given]


def _all_keys(use: LoaderUse) -> set[bytes | None]:
    """Return a digest of each example of a small data set, or an empty set."""
    data = use.loader.dataset
    size = len(data) if hasattr(data, "__len__") and hasattr(data, "__getitem__") else 0
    keys = _keys_of(data, list(range(size))) if size <= _TRAINING else []
    return set(keys) if len(keys) == size else set()


def _differs(call: ModelCall) -> bool:
    """Return whether a network gives other outputs for the same inputs in eval mode."""
    network = call.network.eval()
    with torch.no_grad():
        one, other = (list(tensors(network(*clone(call.args), **clone(call.kwargs)))) for _ in range(2))
    pairs = ((a, b) for a, b in zip(one, other, strict=False) if a.shape == b.shape and a.is_floating_point())
    return any(not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)


def _indices_of(loader: Any, most: int) -> list[int]:
    """Return the indices of the first examples that a loader reads, or [] if it does not read by index."""
    data, sampler = loader.dataset, getattr(loader, "sampler", None)
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        return []
    found = list(islice(sampler, most)) if isinstance(sampler, Sampler) else []
    if found and all(hasattr(index, "__index__") for index in found):  # also integers of NumPy
        return list(map(int, found))
    return list(range(min(most, len(data))))


def _keys_of(data: Any, indices: list[int]) -> list[bytes | None]:
    """Return a digest of each example with these indices; after some seconds, only of the first ones."""
    end, found = time.monotonic() + _SECONDS, []
    for index in indices:
        found.append(_key(data[index]))
        if time.monotonic() > end:
            break
    return found


def _key(example: Any) -> bytes | None:
    """Return a digest of the input of an example, or None if it has none that can be compared.

    The input is the first part that is not a single number: a tensor, an array, an image, a list of numbers, a text.
    """
    if isinstance(example, dict):  # a text may be the name of a file, so look for something else first
        parts: list[Any] = sorted(example.values(), key=lambda part: isinstance(part, str))
    else:
        parts = list(example) if isinstance(example, tuple | list) else [example]
    found = next((part for part in parts if _size(part) > 1), None)
    if isinstance(found, Tensor):
        return hashlib.sha256(tensor_bytes(found)).digest()
    if isinstance(found, str | list | tuple):
        return hashlib.sha256(repr(found).encode()).digest()
    return None if found is None else hashlib.sha256(found.tobytes()).digest()


def _size(part: Any) -> int:
    """Return the number of values in a part of an example; 1 for anything that cannot be compared."""
    if isinstance(part, Tensor):
        return part.numel()
    if isinstance(part, str):
        return len(part)
    if isinstance(part, list | tuple):
        return len(part) if part and all(isinstance(one, int | float | str) for one in part) else 1
    return 2 if callable(getattr(part, "tobytes", None)) and getattr(part, "size", 1) != 1 else 1


def _share(keys: list[bytes | None], training: LoaderUse) -> tuple[float, float]:
    """Return the share of examples that the training data has, too, and the share that it has several times itself."""
    found = _keys_of(training.loader.dataset, _indices_of(training.loader, _TRAINING))
    counts = Counter(found)
    repeated = sum(count for count in counts.values() if count > 1)
    return sum(key in counts for key in keys) / len(keys), repeated / max(1, len(found))


def _share_of_windows(use: LoaderUse, training: LoaderUse) -> float:
    """Return the share of windows whose first or second half lies at another place of a training window."""
    windows = _windows_of(use, _WINDOWS)
    seen: set[bytes] = set()
    for window in _windows_of(training, _TRAINING):
        half = window.size(0) // 2
        seen.update(tensor_bytes(window[at : at + half]) for at in range(window.size(0) - half + 1))
    if not seen or not windows:
        return 0.0
    halves = [(window[: window.size(0) // 2], window[-(window.size(0) // 2) :]) for window in windows]
    return sum(any(_varies(one) and tensor_bytes(one) in seen for one in pair) for pair in halves) / len(windows)


def _windows_of(use: LoaderUse, most: int) -> list[Tensor]:
    """Return examples that may be windows of a series: tensors (T,) or (T, features) of numbers."""
    end, found = time.monotonic() + _SECONDS, list[Tensor]()
    for index in _indices_of(use.loader, most):
        example = use.loader.dataset[index]
        first = example[0] if isinstance(example, tuple | list) and example else example
        if not isinstance(first, Tensor) or first.dim() not in (1, 2) or not first.is_floating_point():
            return []
        if first.size(0) < 2 * _LEAST or time.monotonic() > end:
            return found
        found.append(first)
    return found


def _varies(half: Tensor) -> bool:
    return int(half.unique().numel()) > min(_LEAST, half.numel() - 1)
