"""The exercise `huge_lr` as tests with weights, as in a Gradescope autograder image."""

import functools
import unittest
from typing import Any

from experiment_run import LEAST_ACCURACY, reported_sha256, run_experiment
from gradescope_utils.autograder_utils.decorators import number, weight


@functools.cache
def fixed_run() -> dict[str, Any]:
    """Train once for all tests."""
    return run_experiment()


class TestHugeLr(unittest.TestCase):
    """What earns the ten points."""

    @weight(4)
    @number("1")
    def test_same_checkpoint(self) -> None:
        """The run ends with the checkpoint that was handed in"""
        self.assertEqual(fixed_run()["checkpoint_sha256"], reported_sha256())

    @weight(6)
    @number("2")
    def test_recovers(self) -> None:
        """The network learns: validation accuracy above 50 %"""
        self.assertGreater(fixed_run()["final_val_accuracy"], LEAST_ACCURACY)
