import time

import pytest
from fix_styles import styled_fixes
from runs import edited

from grader.score.known_edits import known_fixes
from grader.syntax.plain_code import suspicions
from harness.recipe import experiment_source, load_recipe, recipe_ids

MLP = experiment_source("digits_mlp")


def nested(classes: int, functions: int, line: str) -> str:
    """Functions inside classes, each in the one before, and in the innermost a line as often as a file may hold it."""
    heads = [f"class A{index}:" for index in range(classes)] + [
        f"def f{index}():" for index in range(functions)
    ]
    body = [*heads, ";".join([line] * min(1800, 8000 // (2 + 2 * line.count(" "))))]
    return "\n".join(" " * depth + text for depth, text in enumerate(body))


def with_line(line: str) -> str:
    """The healthy experiment with a line of a student's in `train_step`, or at the top if it imports."""
    if line.startswith(("import", "from", "class", "def", "@", "X", "torch", "F", "optim", "g ")):
        return edited(MLP, ("EPOCHS = 5\n", f"{line}\nEPOCHS = 5\n"))
    return edited(MLP, ("    loss.backward()\n", f"    loss.backward()\n    {line}\n"))


@pytest.mark.parametrize("recipe", recipe_ids())
def test_what_is_handed_out_and_every_honest_fix_is_plain(recipe: str) -> None:
    loaded = load_recipe(recipe)
    assert suspicions(loaded.healthy_source()) == ()
    assert suspicions(loaded.broken_source()) == ()
    for fix in known_fixes(loaded)[0]:
        if fix.verdict not in ("masking", "wrong"):
            assert suspicions(fix.source) == (), fix.id
    for style, source in styled_fixes(loaded):
        assert suspicions(source) == (), style


PLAIN = [
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "print(loss.item(), len(inputs))",
    "import math",
    "import numpy as np",
    "from torch.optim.lr_scheduler import CosineAnnealingLR",
    "from torch import Tensor, nn",
    "from collections.abc import Callable",
    'scale = torch.amp.GradScaler("cpu")',
    'scale = torch.GradScaler("cpu")',
    "for group in optimizer.param_groups:\n        group['lr'] = 0.1",
    "for p in model.parameters():\n        p.grad = None",
    "for p in model.parameters():\n        p.requires_grad = True",
    "with torch.no_grad():\n        mean = inputs.mean()",
    "assert torch.isfinite(loss), 'not finite'",
    "x = getattr(model, 'training')",
    "grads = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)",
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._width = 3",
    "class Net(nn.Module):\n    def __init__(self):\n        nn.Module.__init__(self)",
    "from dataclasses import dataclass\n@dataclass\nclass Options:\n    lr: float = 0.1",
    "def twice(function):\n    return function\n@twice\ndef other():\n    return 1",
    "x = [1, 2, 3] * 100",
]


@pytest.mark.parametrize("line", PLAIN)
def test_what_a_student_may_write_is_plain(line: str) -> None:
    assert suspicions(with_line(line)) == ()


ODD = [
    ("import sys", "import"),
    ("import os.path", "import"),
    ("import gc, math", "import"),
    ("import torch.utils.cpp_extension", "import"),
    ("from torch import save", "import"),
    ("from torch import os", "import"),
    ("from torch import *", "import"),
    ("from harness.run.recorder import Recorder", "import"),
    ("import harness.trainer", "import"),
    ("from . import x", "import"),
    ("import random", "import"),
    ("import time", "import"),
    ("import threading", "import"),
    ("import pickle", "import"),
    ("X = torch.os.environ", "reach"),
    ("X = torch.sys.modules", "reach"),
    ("X = nn.functional.importlib", "reach"),
    ("X = torch.load('x')", "reach"),
    ("X = torch.hub", "reach"),
    ("torch.manual_seed(0)", "reach"),
    ("torch.use_deterministic_algorithms(False)", "reach"),
    ("torch.set_default_dtype(torch.float64)", "reach"),
    ("X = torch.Generator()", "reach"),
    ("X = torch._C", "reach"),
    ("import numpy as np\nX = np.random.rand(3)", "reach"),
    ("import numpy as np\nnp.load('x')", "reach"),
    ("import dataclasses\nX = dataclasses.sys", "reach"),
    ("g = F\nX = g.importlib", "reach"),
    ("F.cross_entropy = None", "patch"),
    ("torch.nn.functional.cross_entropy = None", "patch"),
    ("torch.optim.SGD.step = None", "patch"),
    ("F.__dict__['cross_entropy'] = None", "introspection"),
    ("optimizer.step = lambda: None", "patch"),
    ("model.forward = None", "patch"),
    ("del torch.nn", "patch"),
    ("exec('x = 1')", "builtin"),
    ("e = eval", "builtin"),
    ("open('x')", "builtin"),
    ("__import__('sys')", "builtin"),
    ("getattr(model, 'a' + 'b')", "builtin"),
    ("getattr(model, '__class__')", "builtin"),
    ("setattr(model, 'a', 1)", "builtin"),
    ("x = __builtins__", "builtin"),
    ("x = ().__class__.__bases__", "introspection"),
    ("x = train_step.__globals__", "introspection"),
    ("x = '__globals__'", "introspection"),
    ("x = (i for i in ()).gi_frame", "introspection"),
    ("x = optimizer._optimizer_step_pre_hooks", "private"),
    ("model.register_forward_hook(print)", "hook"),
    ("inputs.register_hook(print)", "hook"),
    ("optimizer.register_step_post_hook(print)", "hook"),
    ("inputs.numpy().tofile('x')", "memory"),
    ("class Evil(float):\n    pass", "class"),
    ("class Evil(torch.optim.SGD):\n    pass", "class"),
    ("class Evil(metaclass=print):\n    pass", "class"),
    ("class Evil:\n    def __eq__(self, other):\n        return True", "class"),
    ("x = type('Evil', (float,), {})", "class"),
    ("import functools\n@functools.singledispatch\ndef other():\n    return 1", "decorator"),
    (f"X = {list(range(300))}", "data"),
    (f"X = {'a' * 2000!r}", "data"),
    (f"X = {10**40}", "data"),
    (f"X = 0x{'f' * 6000}", "unparsable"),
]


@pytest.mark.parametrize(("line", "code"), ODD)
def test_what_could_reach_the_grader_is_named(line: str, code: str) -> None:
    found = suspicions(with_line(line))
    assert code in {item.code for item in found}
    for item in found:
        assert item.code == "unparsable" or item.message.startswith(f"line {item.line} ")
        assert len(item.message) < 200
        assert not item.message.endswith(".")


@pytest.mark.parametrize(
    "source",
    [
        nested(45, 45, "x = 1"),
        nested(20, 70, "x.add(1)"),
        nested(90, 0, "x = 1"),
        nested(0, 90, "x = [x]"),
        "x = " + "lambda: [" * 45 + "1, " * 3000 + "]" * 45,
        "x = " + "[" * 90 + "1, " * 3000 + "]" * 90,
        "(" * 10_000 + ")" * 10_000,
        "x = 1\n" * 10_000,
        "g = torch\n" * 5000,
        "a.b" + ".c" * 20_000,
        "\0",
        "import x" * 3,
    ],
)
def test_a_source_made_to_hurt_is_answered_at_once(source: str) -> None:
    begun = time.process_time()
    assert all(item.message for item in suspicions(source))
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(("classes", "functions"), [(1, 4), (3, 2), (0, 5), (5, 0)])
def test_definitions_inside_definitions_are_looked_at_as_deep_as_anybody_writes(
    classes: int, functions: int
) -> None:
    assert "nesting" not in {item.code for item in suspicions(nested(classes, functions, "x = 1"))}
    assert "builtin" in {item.code for item in suspicions(nested(classes, functions, "x = exec"))}
    found = suspicions(nested(classes, functions + 1, "x = 1"))
    assert [item.code for item in found] == ["nesting"]
    assert "line 6 defines" in found[0].message


COUNTERS = [
    "TICKS = iter(range(9))",
    "TICKS, OTHER = enumerate([1, 2]), 1",
    "from itertools import count\nTICKS = count()",
    "TICKS = (n for n in range(9))",
    "def ticks():\n    yield 1\nTICKS = ticks()",
    "def make():\n    return [zip([1])]\nTICKS = make()",
    "class Counter:\n    def __init__(self):\n        self.ticks = map(abs, [1])\nTICKS = Counter()",
    "def helper(ticks=iter(range(9))):\n    for tick in ticks:\n        return tick",
    "from torch import nn\nNORM = nn.BatchNorm1d(1)",
    "X = torch.zeros(1)\ndef helper():\n    nn.init.ones_(X)",
    "X = torch.zeros(1)\ndef helper():\n    torch.add(X, 1, out=X)",
    "X = torch.zeros(1)\ndef helper():\n    F.relu(X, inplace=True)",
    "X = set()\ndef helper():\n    X.symmetric_difference_update({1})",
    "class Net(nn.Module):\n    def forward(self, x):\n        self.calls += 1\n        return x",
    "class Net(nn.Module):\n    def forward(self, x):\n        self.calls.add_(1)\n        return x",
]


@pytest.mark.parametrize("line", COUNTERS)
def test_what_counts_its_calls_is_named(line: str) -> None:
    source = edited(MLP, ("EPOCHS = 5\n", f"{line}\nEPOCHS = 5\n"))
    assert {item.code for item in suspicions(source)} == {"state"}


@pytest.mark.parametrize(
    "line",
    [
        "optimizer.param_groups[0]['calls'] = 1",
        "optimizer.defaults['lr'] = 1",
        "for group in optimizer.param_groups:\n        group['calls'] = 1",
        "model.register_buffer('calls', loss)",
    ],
)
def test_a_note_on_what_the_harness_hands_over_is_named(line: str) -> None:
    assert {item.code for item in suspicions(with_line(line))} == {"state"}


@pytest.mark.parametrize(
    "line",
    [
        "TABLE = [n for n in enumerate([1, 2])]",
        "TABLE = dict(zip([1], [2]))",
        "from torch import nn\nLOSS = nn.CrossEntropyLoss()",
        "class Net(nn.Module):\n    def __init__(self):\n        self.norm = nn.BatchNorm1d(3)",
        "def helper(model):\n    return sum(p.numel() for p in model.parameters())",
    ],
)
def test_what_is_used_up_where_it_is_made_counts_nothing(line: str) -> None:
    assert suspicions(edited(MLP, ("EPOCHS = 5\n", f"{line}\nEPOCHS = 5\n"))) == ()


@pytest.mark.parametrize(
    "line",
    [
        f"TEXT = list(dict({'a' * 61}=None))[0]",
        f"TEXT = list(dict({', '.join(f'k{n}=None' for n in range(41))}))",
        "; ".join(f"{'n' * 50}{n} = None" for n in range(80)),
    ],
)
def test_names_that_could_hold_weights_are_named(line: str) -> None:
    source = edited(MLP, ("EPOCHS = 5\n", f"{line}\nEPOCHS = 5\n"))
    assert {item.code for item in suspicions(source)} == {"data"}
