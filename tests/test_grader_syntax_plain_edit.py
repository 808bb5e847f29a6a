"""Both sides of the grammar of plain edits: what honest people write, and what could reach or change the recorder."""

import pytest
from fix_styles import HONEST, OTHER_WAYS, honest_fixes, styled_fixes
from mini_experiments import edited
from sampling import every_recipe

from grader.syntax.plain_edit import MOST_NODES, plain_edit
from harness.recipe import Recipe, experiment_source
from harness.solutions import known_fixes

MLP = experiment_source("digits_mlp")


def at_top(lines: str) -> tuple[str, ...]:
    """What is not plain in lines at the top of a healthy experiment."""
    source = edited(MLP, ("EPOCHS = 5\n", f"{lines}\nEPOCHS = 5\n"))
    return tuple(item.message for item in plain_edit(MLP, source))


def in_step(lines: str) -> tuple[str, ...]:
    """What is not plain in lines of its `train_step`."""
    indented = "".join(f"    {line}\n" for line in lines.split("\n"))
    source = edited(MLP, ("    optimizer.step()\n", f"    optimizer.step()\n{indented}"))
    return tuple(item.message for item in plain_edit(MLP, source))


@pytest.mark.parametrize("recipe", every_recipe())
def test_an_honest_fix_is_plain(recipe: Recipe) -> None:
    broken = recipe.broken_source()
    sources = {fix.id: fix.source for fix in known_fixes(recipe)[0]} | dict(styled_fixes(recipe))
    sources |= {source: source for edits in (HONEST, OTHER_WAYS) for source in honest_fixes(recipe, edits)}
    found = {name: plain_edit(broken, source) for name, source in sources.items()}
    assert {name: items for name, items in found.items() if items} == {}


@pytest.mark.parametrize("line", [
    "if not torch.isfinite(loss):\n    print('not finite', f'{loss.item():.3f}')",
    "for group in optimizer.param_groups:\n    group['lr'] *= 0.1",
    "with torch.no_grad():\n    mean = inputs.mean()",
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n    loss = compute_loss(model(inputs), labels)",
    "norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]\nprint(max(norms))",
    "order = torch.arange(8)\norder[:4] = 0", "counts = {}\ncounts['a'] = 1", "model[1].weight.grad = None",
    "total: float = 0.0\ntotal += loss.item()", "raise ValueError('loss')",
    "try:\n    loss.item()\nexcept (RuntimeError, ValueError) as error:\n    print(error)\n    raise",
    "device = next(model.parameters()).device", "hits = {c: 0 for c in range(10)}\nhits[3] += 1",
])  # fmt: skip
def test_a_plain_line_is_plain(line: str) -> None:
    assert in_step(line) == ()


@pytest.mark.parametrize("lines", [
    "RATE = -0.1 / (2 + 3)", "from torch.optim.lr_scheduler import CosineAnnealingLR",
    "criterion = nn.CrossEntropyLoss(label_smoothing=0.1)", "DEVICE = torch.device('cpu')\nDTYPE = torch.float32",
    "from typing import Optional\ndef f(x: Optional[torch.Tensor] = None, *, n: int | None = 3) -> 'X':\n    return x",
    "@torch.inference_mode()\ndef f(x: dict[str, float]) -> tuple[int, ...]:\n    '''Count.'''\n    return len(x), 1",
    "class Net(nn.Module):\n    def __init__(self, width=8):\n        super().__init__()\n"
    "        self.fc = nn.Linear(8, width)\n"
    "        self.width = width\n\n    def forward(self, x):\n        return self.head(self.fc(x)) * self.width\n\n"
    "    def head(self, x):\n        return x.relu()\n\ndef f():\n    return Net()",
    "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Config:\n    rate: float = 0.1\n\n"
    "CFG = Config()\n"
    "RATE = CFG.rate\ndef f(m):\n    return torch.optim.SGD(m.parameters(), lr=CFG.rate)",
    "H = {'lr': 0.1}\nRATE = H['lr']", "if __name__ == '__main__':\n    import sys\n    sys.exit(build_model())",
    "import logging\nlog = logging.getLogger(__name__)\ndef f(x):\n    log.info('%s', x)",
    "import time\ndef f(x):\n    start = time.perf_counter()\n    print(time.perf_counter() - start)",
    "from collections import OrderedDict\ndef f():\n    return nn.Sequential(OrderedDict([('a', nn.ReLU())]))",
    "from typing import NamedTuple\nclass Batch(NamedTuple):\n    x: torch.Tensor\n\ndef f(x):\n    return Batch(x).x",
    "def f(x):\n    return x.clamp(min=torch.finfo(x.dtype).tiny)",
    "from typing import NamedTuple\nclass C(NamedTuple):\n    rate: float = 0.1\n\nCFG = C(rate=0.2)\nRATE = CFG.rate",
    "def g(step):\n    return 0.1 if step else 1.0\ndef f(o):\n    return torch.optim.lr_scheduler.LambdaLR(o, g)",
    "def f(o):\n    return torch.optim.lr_scheduler.LambdaLR(o, lambda step: 0.9 ** step * max(0.1, 1 - step / 10))",
])  # fmt: skip
def test_plain_lines_at_the_top_are_plain(lines: str) -> None:
    assert at_top(lines) == ()


# Each could reach what records and examines an experiment, or keep something from one call to the next.
TOP = {
    "modules": [
        "import os", "import sys", "import random", "import importlib", "import numpy as np",
        "from torch import *", "from torch import load", "from . import x", "import harness.run.recorder",
        "from harness import trainer", "import torch.utils.cpp_extension", "from torch.nn.modules import module",
        "import functools", "import operator", "import types", "import enum", "import copy as F",
        "from enum import bltns", "import torch as len", "import math as model",
    ],
    "reflection": [
        "X = torch.os.environ", "X = torch._C", "X = nn.functional.importlib", "X = torch.__dict__", "X = torch.load",
        "X = ().__class__", "X = getattr(torch, 'sys')", "X = vars(torch)", "X = type('A', (), {})",
        "X = '{0.__class__}'.format(torch)", "X = __builtins__", "X = __loader__", "X = globals()", "X = eval('1')",
        "def f(eval):\n    return eval\nX = eval('1')", "X = torch.compile", "X = torch.Tensor.backward",
        "import copy\nX = copy.copyreg", "X = nn.Module.__init__.__globals__", "X = [torch][0].sys",
        "X = torch.optim.SGD.step.__code__", "X = nn.init.warnings",
    ],
    "loading": [
        "def f(x: open('x').read()):\n    pass", "def f(x=open('x')):\n    pass", "def f() -> open('x'):\n    pass",
        "X: exec('1') = 1", "@print\ndef f():\n    pass", "print('loaded')", "torch.manual_seed(1)",
        "@torch.no_grad\n@torch.compile\ndef f(): pass", "class A:\n    x = 1", "class N(nn.Linear):\n    pass",
        "class N(nn.Module):\n    x = []", "class N(nn.Module):\n    def parameters(self):\n        return []",
        "class N(nn.Module):\n    def __call__(self, x):\n        return x",
        "class N(nn.Module, metaclass=type):\n    pass",
        "class N(nn.Module):\n    def __init__(self):\n        self.n = torch.zeros(1)",
        "class N(nn.Module):\n    def __init__(self):\n        self.n = [2, 1]",
        "class N(nn.Module):\n    def forward(self, x):\n        self.n = 1\n        return x",
        "@staticmethod\nclass C:\n    x: int = 1",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int = print(1)",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int = 1\nc = C()\ndef f():\n    c.x = 2",
        "X = {'n': 0}\ndef f():\n    X['n'] = X['n'] + 1", "X = {'n': [2, 1]}",
        "if __name__ != '__main__':\n    print()",
        "if True:\n    EPOCHS = 3", "optimizer.step()", "for X in range(3):\n    pass", "F.cross_entropy = None",
        "torch.optim.SGD.step = print", "train_step.calls = 1", "del torch.nn", "def f(x: list[eval('1')]): pass",
        "async def f(): pass", "nn.Module.forward = None",
    ],
    "state": [
        "X = []", "X = iter(range(9))", "X = torch.zeros(1)", "X = (n for n in range(9))",
        "X = nn.BatchNorm1d(1)", "X = torch.Generator()", "def f(x=[]):\n    return x",
        "def f(x=torch.zeros(1)):\n    return x", "def f(x=train_step):\n    pass", "X = lambda: 1", "X = train_step",
        "def f(**x):\n    pass", "def f():\n    def g():\n        pass\n    return g", "def f():\n    yield 1",
    ],
    "schedules": [
        f"import time\ndef g(step):\n    {body}\ndef f(o):\n    return torch.optim.lr_scheduler.LambdaLR(o, {name})"
        for body, name in (
            ("return time.perf_counter()", "g"), ("torch.manual_seed(1)\n    return 1.0", "g"),
            ("torch.set_grad_enabled(False)\n    return 1.0", "lr_lambda=g"), ("return time.time()", "[g]"),
        )
    ] + [
        "class N(nn.Module):\n    def g(self, step):\n        return torch.rand(1)\n\n"
        "def f(o):\n    return torch.optim.lr_scheduler.LambdaLR(o, N().g)",
    ],
    "data": [
        f"X = {'a' * 101!r}", f"X = {10**13}", "X = b'weights'", "X = 1j", f"X = {tuple([0.5] * MOST_NODES)}",
        f"def f():\n    return dict({'a' * 61}=1)", f"{'n' * 61} = 1",
    ],
}  # fmt: skip
STEP = {
    "closures": [
        "optimizer.step(lambda: loss)", "scaler.step(train_step)", "f = train_step", "F.relu(lambda: 1)",
        "loss.register_hook(print)", "model.register_forward_hook(print)", "model.apply(print)", "f = optimizer.step",
        "loss.grad_fn.register_prehook(print)",
        "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: optimizer.step())",
        "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: model.weight)",
        "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step, x=model: 1)",
        "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: train_step(step))",
        "nn.init.zeros_(lambda: 1)",
    ],
    "attributes": [
        "model.calls = 1", "for m in [model]:\n    m.grad = 1",
        "optimizer.step = print", "model.forward = print", "optimizer.grad = 1",
        "inputs.grad = loss",
        "model.training = True", "optimizer.param_groups[0]['calls'] = 1", "optimizer.param_groups = []",
        "optimizer.state['x'] = 1", "optimizer.defaults['lr'] = 1", "model._forward_hooks.clear()", "F.grad = 1",
        "loss.data = inputs", "model.append(nn.Identity())", "labels[:] = 0", "optimizer.param_groups.clear()",
        "for group in optimizer.param_groups:\n    group['calls'] = 1", "model.register_buffer('calls', loss)",
        "loss.untyped_storage()", "inputs.numpy().tofile('x')", "model.load_state_dict({})", "loss.__class__ = float",
    ],
    "statements": [
        "global EPOCHS", "nonlocal loss", "import os", "while True:\n    pass", "del loss", "raise SystemExit",
        "try:\n    pass\nexcept BaseException:\n    pass",
        "try:\n    pass\nexcept:\n    pass",
        "try:\n    pass\nexcept BaseException:\n    pass", "match loss:\n    case object(__class__=c):\n        pass",
        "with open('x') as f:\n    pass", "with torch.random.fork_rng():\n    pass", "(t := torch)", "len = print",
        "torch = model", "scaler.update(2.0)", "f(**{'a': 1})", "return (yield)", "exec('1')",
        "x = train_step.__globals__", "x = f'{loss.__class__}'", "super().step()", "torch.set_num_threads(2)",
        "x: exec('1') = 1", "torch.cuda.amp.custom_fwd(print)",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", [line for lines in TOP.values() for line in lines])
def test_lines_at_the_top_that_reach_out_are_not_plain(lines: str) -> None:
    found = at_top(lines)
    assert found
    assert all(item.startswith("line ") and len(item) < 200 and not item.endswith(".") for item in found)


@pytest.mark.parametrize("lines", [line for lines in STEP.values() for line in lines])
def test_lines_in_a_function_that_reach_out_are_not_plain(lines: str) -> None:
    assert in_step(lines)


def test_an_import_may_not_stand_for_a_local_object() -> None:
    """`import math as m` in one function would make `m.anything` in another look like math's."""
    lines = "def f(m):\n    return m.exp\ndef g():\n    import math as m\n    return m.exp(1)"
    assert any("second meaning" in item for item in at_top(lines))


def test_our_own_statements_are_trusted_and_too_many_others_are_not() -> None:
    assert plain_edit(MLP, MLP) == ()
    moved = edited(
        MLP, ("    optimizer.zero_grad()\n", ""), ("    return loss\n", "    optimizer.zero_grad()\n    return loss\n")
    )
    assert plain_edit(MLP, moved) == ()
    assert plain_edit("class A:\n    pass", "class A:\n    pass\nX = 1") == ()
    (found,) = plain_edit(MLP, edited(MLP, ("    return loss\n", "    loss = loss * 1\n" * 80 + "    return loss\n")))
    assert f"more than {MOST_NODES}" in found.message


def test_a_source_that_does_not_parse_is_not_plain() -> None:
    (found,) = plain_edit(MLP, "def (")
    assert found.line == 0
    assert "cannot be read" in found.message
