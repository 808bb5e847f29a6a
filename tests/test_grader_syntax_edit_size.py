"""The size of an edit: nothing for nothing, the same both ways, small for small edits, and always bounded."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import edited

from grader.syntax.edit_size import AREAS, changed_areas, compare
from harness.recipe import experiment_source
from harness.run.experiment import FUNCTIONS

SOURCE = experiment_source("digits_mlp")
HEAT = experiment_source("digits_heat")


def edit_size(old: str, new: str) -> int:
    return compare(old, new).total


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        ("x = 1", "x = 1  # one", 0),
        ("x = 1", "x: int = 1", 0),
        ("from torch import nn\nx = nn.ReLU()", "import torch\nx = torch.nn.ReLU()", 0),
        ("import torch.nn.functional as F\nx = F.relu(1)", "from torch.nn.functional import relu\nx = relu(1)", 0),
        ("x = 1", "x = 2", 1),
        ("x = f(1)", "x = g(1)", 1),
        ("x = f(1)", "x = f(1, 2)", 1),
        ("x = f(1)", "x = f(1, a=2)", 2),
        ("f(1)\ng(2)", "f(1)", 4),
        ("x = 1", "", 3),
        ("x = 1", "y = 1", 6),
        ("def f():\n    g()\n", "def f():\n    h()\n    g()\n", 3),
        ("def f(a, b):\n    return a", "def f(a, *, b):\n    return a", 2),
        ("x = {**a}", "x = {a: a}", 1),
    ],
)  # fmt: skip
def test_the_nodes_of_an_edit_are_counted(old: str, new: str, size: int) -> None:
    assert edit_size(old, new) == size
    assert edit_size(new, old) == size


@given(st.lists(st.sampled_from(["f(x)", "g(x, 1)", "x = y", "if x:\n    f(x)", "return x"]), max_size=6),
       st.lists(st.sampled_from(["f(x)", "g(x, 1)", "x = y", "if x:\n    g(y)", "return y"]), max_size=6))  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_the_distance_is_symmetric_and_zero_for_equal_trees_alone(old: list[str], new: list[str]) -> None:
    first, second = (
        "def f():\n"
        + "".join(f"    {line}\n" for item in items for line in item.splitlines())
        + "    end()\n"
        for items in (old, new)
    )
    size = edit_size(first, second)
    assert size == edit_size(second, first)
    assert (size == 0) == (ast.dump(ast.parse(first)) == ast.dump(ast.parse(second)))


HEAVY = {
    "definitions": "".join(f"def f{i}():\n    return f{i + 1}(1, 2)\n" for i in range(600)),
    "statements": "def f():\n" + "".join(f"    g({i}, x)\n" for i in range(900)),
    "nested": "def f():\n" + "".join(" " * (4 + i) + f"if a{i}:\n" for i in range(45)) + " " * 60 + "g()\n",
    "names": "(" + ", ".join(f"a{i}" for i in range(3500)) + ") = 1\n",
    "imports of one name": "".join(f"import a{i} as x\n" for i in range(1000)) + "x.y\n" * 1000,
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_large_edit_is_measured(name: str) -> None:
    assert edit_size(SOURCE, SOURCE + HEAVY[name]) > 0
    assert edit_size("def f():\n" + "    h(x, 1)\n" * 900, HEAVY[name]) > 100


def test_every_function_of_an_experiment_has_an_area() -> None:
    assert set(AREAS) >= set(FUNCTIONS)


@pytest.mark.parametrize(("edit", "areas"), [
    (("lr=0.001", "lr=0.1"), {"optimizer"}), (("TIME_STEP = 0.005", "TIME_STEP = 0.1"), {"data"}),
    (("padding=1", "padding=0"), {"data"}), (("EPOCHS = 6", "EPOCHS = 7"), {"loop"}),
    (('GradScaler("cpu")', 'GradScaler("cpu", enabled=False)'), {"loop"}),
    (("mse_loss", "l1_loss"), {"loss"}), (("def build_model():", "def build_model():  # the network"), set()),
    (("EPOCHS = 6", "if True:\n    def compute_loss(a, b): return a\nEPOCHS = 6"), {"loss"}),
    (("import torch.nn.functional as F", "import math as F"), {"data", "loss"}),
])  # fmt: skip
def test_an_edit_touches_its_areas(edit: tuple[str, str], areas: set[str]) -> None:
    assert changed_areas(HEAT, edited(HEAT, edit)) == areas


def test_sizes_stand_under_their_parts() -> None:
    changes = compare(HEAT, edited(HEAT, ("lr=0.001", "lr=0.1"), ("AMP = True", "AMP = False")))
    assert changes.sizes == {"AMP": 1, "build_optimizer": 1}
    assert changes.total == 2
