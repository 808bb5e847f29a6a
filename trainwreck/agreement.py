"""How often predictions equal labels, beside how often predictions would that are drawn without the inputs."""

from collections import Counter

from torch import Tensor

_MOST = 20_000  # labels of an evaluation


class Agreement:
    """Counts the answers of one evaluation: those since the latest update."""

    def __init__(self) -> None:
        self._step = -1
        self._predicted: Counter[float] = Counter()
        self._labels: Counter[float] = Counter()
        self._hits = 0

    def add(self, step: int, predictions: Tensor, labels: Tensor) -> None:
        """Count predictions and labels, of the same shape. Forget those before another update."""
        if step != self._step:
            self._step, self._hits = step, 0
            self._predicted.clear()
            self._labels.clear()
        if self._labels.total() + labels.numel() <= _MOST:
            self._predicted.update(predictions.flatten().tolist())
            self._labels.update(labels.flatten().tolist())
            self._hits += int((predictions == labels).sum())

    def counts(self) -> tuple[int, int, float]:
        """Return the number of answers, of right ones, and how many are right on average if the labels are permuted.

        Labels that are all equal say nothing of a relation. All answers are expected to be right then.
        """
        size = self._labels.total()
        expected = sum(count * self._labels[kind] for kind, count in self._predicted.items()) / max(1, size)
        return size, self._hits, expected if len(self._labels) > 1 else float(size)
