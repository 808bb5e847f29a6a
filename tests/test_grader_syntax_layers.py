"""Which layers an edit touches, whatever it goes through."""

import pytest
from runs import edited

from grader.syntax.layers import LAYERS, changed_layers, compare
from harness.recipe import experiment_source
from harness.run.experiment import FUNCTIONS

SOURCE = experiment_source("digits_heat")


def test_every_function_of_an_experiment_has_a_layer() -> None:
    assert set(LAYERS) >= set(FUNCTIONS)


@pytest.mark.parametrize(
    ("edit", "layers"),
    [
        (("lr=0.001", "lr=0.1"), {"optimizer"}),
        (("TIME_STEP = 0.005", "TIME_STEP = 0.1"), {"data"}),
        (("padding=1", "padding=0"), {"data"}),
        (("EPOCHS = 6", "EPOCHS = 7"), {"loop"}),
        (('GradScaler("cpu")', 'GradScaler("cpu", enabled=False)'), {"loop"}),
        (("mse_loss", "l1_loss"), {"loss"}),
        (("def build_model():", "def build_model():  # the network"), set()),
        (("EPOCHS = 6", "if True:\n    def compute_loss(a, b): return a\nEPOCHS = 6"), {"loss"}),
        (("import torch.nn.functional as F", "import math as F"), {"data", "loss"}),
    ],
)
def test_an_edit_touches_its_layers(edit: tuple[str, str], layers: set[str]) -> None:
    assert changed_layers(SOURCE, edited(SOURCE, edit)) == layers


def test_sizes_stand_under_their_parts() -> None:
    changes = compare(SOURCE, edited(SOURCE, ("lr=0.001", "lr=0.1"), ("AMP = True", "AMP = False")))
    assert changes.sizes == {"AMP": 1, "build_optimizer": 1}
    assert changes.total == 2


def test_names_that_are_bound_together_are_read_once() -> None:
    names = ", ".join(f"a{i}" for i in range(1500))
    assert changed_layers(SOURCE, SOURCE + f"({names}) = ({names})\n") == frozenset()
