"""Each epoch has its own order."""

from collections import Counter
from typing import Any, ClassVar

from torch.utils.data import IterableDataset, RandomSampler, SequentialSampler

from trainwreck.check import Check
from trainwreck.checks.workers import digest_of
from trainwreck.events import LoaderUse, LossCall
from trainwreck.finding import Outcome
from trainwreck.places import Place

# figure                                                       | healthy | broken | bound
# neighbours with other labels, over the ones of a random order  | near 1  | < 0.1  | SORTED 0.2
SORTED = 0.2
_LEAST = 20  # expected neighbours with other labels


class Order(Check):
    """A loader that shuffles gives another order in each epoch, and labels are not sorted."""

    name = "order"
    question = "Are the examples in another order in each epoch?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "same-each-epoch": Outcome(
            "alarm",
            "The data loader shuffles, but two epochs have the same order.",
            "Call sampler.set_epoch(epoch) in each epoch, and set the seed only once.",
        ),
        "sorted": Outcome(
            "advice",
            "The labels come in blocks of equal ones, because the examples are sorted and not shuffled.",
            "Use DataLoader(..., shuffle=True).",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._firsts: dict[int, bytes] = {}  # by loader, a digest of the first batch of the latest epoch
        self._pairs = [0, 0]  # labels that differ from the next one, and all
        self._counts: Counter[int] = Counter()  # by label
        self._place: Place | None = None

    def on_batch(self, use: LoaderUse, batch: Any, number: int) -> None:
        """Compare the first batches of epochs."""
        if number or isinstance(use.loader.dataset, IterableDataset):
            return
        digest, key = digest_of(batch), id(use)
        if digest is None:
            return
        if self._firsts.get(key) == digest and self._shuffles(use) and use.length > 1:
            self.tell("same-each-epoch", f"epochs {use.epochs - 1} and {use.epochs} begin with the same batch")
        self._firsts[key] = digest

    def on_loss(self, loss: LossCall) -> None:
        """Count neighbours with other labels."""
        labels = loss.targets
        if not loss.with_gradients or loss.name not in ("cross_entropy", "nll_loss") or labels.dim() != 1:
            return
        if labels.is_floating_point() or labels.numel() < 2:
            return
        self._pairs[0] += int((labels[1:] != labels[:-1]).sum())
        self._pairs[1] += labels.numel() - 1
        self._counts.update(labels.tolist())
        self._place = loss.place

    def at_end(self) -> None:
        """Say whether the labels are sorted."""
        changes, pairs = self._pairs
        total = sum(self._counts.values())
        # Two labels that are drawn one by one differ with this probability.
        expected = pairs * (1 - sum((count / total) ** 2 for count in self._counts.values())) if total else 0.0
        trained = [use for use in self.watch.loaders.values() if use.training]
        in_order = [use for use in trained if isinstance(getattr(use.loader, "sampler", None), SequentialSampler)]
        if in_order and expected >= _LEAST and changes < SORTED * expected:
            text = (
                f"{changes} of {pairs} labels differ from the next one; in a random order, about {expected:.0f} would"
            )
            self.tell("sorted", text, self._place)

    @staticmethod
    def _shuffles(use: LoaderUse) -> bool:
        sampler = getattr(use.loader, "sampler", None)
        return isinstance(sampler, RandomSampler) or bool(getattr(sampler, "shuffle", False))
