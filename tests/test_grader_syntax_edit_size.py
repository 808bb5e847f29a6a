"""The size of an edit: nothing for nothing, the same both ways, small for small edits, and always bounded."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.syntax.edit_size import bound_names, edit_size
from harness.recipe import experiment_source

SOURCE = experiment_source("digits_mlp")


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


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, int]:
    """The healthy experiment with some of its numbers changed, and how many."""
    tree = ast.parse(SOURCE)
    numbers = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, int | float)]
    chosen = draw(st.sets(st.sampled_from(range(len(numbers))), max_size=4))
    for index in chosen:
        numbers[index].value = 31337
    return ast.unparse(tree), len(chosen)


@given(edits())
@settings(max_examples=30, deadline=None)
def test_each_changed_number_is_one_node_either_way(edit: tuple[str, int]) -> None:
    source, count = edit
    assert edit_size(SOURCE, source) == edit_size(source, SOURCE) == count


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


def test_what_a_definition_binds_inside_is_its_own() -> None:
    (statement,) = ast.parse(
        "if a:\n    def evaluate(model):\n        x = 1\n    EPOCHS, y = lambda z: z\n"
    ).body
    assert bound_names(statement) == ("EPOCHS", "evaluate", "y")
