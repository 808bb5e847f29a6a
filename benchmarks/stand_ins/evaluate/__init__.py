"""Metrics under the names that programs load: each is the share of equal answers."""

from typing import Any

import numpy as np


def _flat(answers: Any) -> list[Any]:
    if isinstance(answers, str) or not hasattr(answers, "__len__") or getattr(answers, "ndim", 1) == 0:
        return [answers]
    return [one for part in answers for one in _flat(part)]


class Metric:
    """Counts equal answers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.predictions: list[Any] = []
        self.references: list[Any] = []

    def add_batch(self, predictions: Any, references: Any) -> None:
        """Add some answers."""
        self.predictions += _flat(predictions)
        self.references += _flat(references)

    def compute(self, predictions: Any = None, references: Any = None, **unused: Any) -> dict[str, Any]:
        """Return the share of equal answers under all names that programs ask for, and begin anew."""
        if predictions is not None:
            self.add_batch(predictions, references)
        equal = [one == other for one, other in zip(self.predictions, self.references, strict=False)]
        share = float(np.mean(equal)) if equal else 0.0
        self.predictions, self.references = [], []
        names = {
            "seqeval": ("overall_precision", "overall_recall", "overall_f1", "overall_accuracy"),
            "sacrebleu": ("score",),
        }
        return dict.fromkeys(names.get(self.name, ("accuracy",)), share)


def load(path: str, *positional: Any, **named: Any) -> Metric:
    """Return the metric of a name."""
    return Metric(path)
