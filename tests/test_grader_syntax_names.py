"""What names stand for, under every import and alias, within bounds."""

import ast

import pytest

from grader.syntax.names import UNCLEAR, read_names


@pytest.mark.parametrize(("text", "paths"), [
    ("import torch\ntorch.nn.ReLU", {"torch.nn.ReLU"}),
    ("import torch.nn.functional as F\nF.relu", {"torch.nn.functional.relu"}),
    ("import torch.nn\ntorch.nn.ReLU", {"torch.nn.ReLU"}),
    ("from torch import nn as n\nn.ReLU", {"torch.nn.ReLU"}), ("from . import own\nown.x", {"..own.x"}),
    ("import torch\ng = torch.nn\nh = g\nh.ReLU", {"torch.nn.ReLU"}),
    ("import a\ndef f():\n    import b as a\na.x", {"a.x", "b.x"}), ("import a\nx: object = a\nx.y", {"a.y"}),
    ("x.y", set()), ("f().y", set()),
])  # fmt: skip
def test_a_chain_of_attributes_has_its_paths(text: str, paths: set[str]) -> None:
    tree = ast.parse(text)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert read_names(tree).paths_of(last.value) == paths


@pytest.mark.parametrize("text", [
    "import a as x\n" + "x = x.y\n" * 3,
    "import a0\n" + "".join(f"a{i + 1} = a{i}\n" for i in reversed(range(40))) + "x = a40\n",
    "".join(f"import a{i} as x\n" for i in range(2000)),
])  # fmt: skip
def test_what_is_too_tangled_to_follow_is_unclear_and_bounded(text: str) -> None:
    paths = read_names(ast.parse(text)).paths["x"]
    assert UNCLEAR in paths
    assert len(paths) <= 14
