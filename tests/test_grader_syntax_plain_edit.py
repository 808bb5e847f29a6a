"""Both sides of the grammar of plain edits: code that honest people write, and code that could reach the recorder."""

import pytest
from helpers.fix_styles import HONEST, OTHER_WAYS, honest_fixes, styled_fixes
from helpers.mini_experiments import COUNTING, edited
from helpers.sampling import every_recipe

from grader.syntax.plain_edit import MOST_NODES, plain_edit
from harness.recipes.catalogue import load_recipe
from harness.recipes.form import is_script
from harness.recipes.known_edits import known_fixes
from harness.recipes.recipe import Recipe, experiment_source

MLP = experiment_source("digits_mlp")


def at_top(lines: str) -> tuple[str, ...]:
    """Return the suspicions about lines at the top of a healthy experiment."""
    source = edited(MLP, ("EPOCHS = 5\n", f"{lines}\nEPOCHS = 5\n"))
    return tuple(item.message for item in plain_edit(MLP, source))


def in_step(lines: str, top: str = "") -> tuple[str, ...]:
    """Return the suspicions about lines in its `train_step`, with other lines at the top."""
    indented = "".join(f"    {line}\n" for line in lines.split("\n"))
    source = edited(
        MLP, ("    optimizer.step()\n", f"    optimizer.step()\n{indented}"), ("EPOCHS = 5\n", f"{top}\nEPOCHS = 5\n")
    )
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
    # functions in functions
    "scale = 0.5\ndef scaled(x, power=2):\n    return scale * x ** power\nprint(scaled(inputs).mean())",
    "seen = []\ndef note(x):\n    seen.append(x.mean())\nfor x in inputs:\n    note(x)\nprint(sum(seen))",
    "def half(x):\n    return x / 2\nprint(list(map(half, inputs)))",
    "last = 10\ndef factor(step):\n    if step < 3 and last > 3:\n        return step / 3\n    share = step / last\n"
    "    share *= 2\n    return min(1.0, share)\ns = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)",
    # tensors
    "x = inputs.contiguous(memory_format=torch.channels_last).movedim(0, -1)",
    "x = torch.special.entr(inputs.softmax(1)) + torch.addmm(inputs, inputs, inputs)",
    "x = torch.empty(3)\nn = 2\nnn.init.uniform_(x)\nprint(x)", "x = torch.Tensor(3)", "x = inputs.new_empty(3)",
    "order = labels.argsort()\nback = torch.empty_like(order)\nback[order] = torch.arange(len(order))",
    "half = slice(0, len(labels) // 2)\nx = inputs[half], labels[slice(2)]", "x = torch.Tensor([1.0, 2.0])",
    "known = {id(p) for p in model.parameters()}\nassert all(id(p) in known for p in model.parameters())",
    "x = torch.randperm(9, generator=torch.Generator().manual_seed(0))", "x = {i.numpy().tobytes() for i in inputs}",
    # settings, networks, optimizers
    "settings = {'lr': 0.1, 'betas': (0.9, 0.99)}\nx = torch.optim.AdamW(model.parameters(), **settings)",
    "settings = dict(bias=False)\nx = nn.Linear(2, 2, **settings)",
    "print(optimizer.defaults['lr'])\nprint(len(optimizer.state), f'{len(optimizer.state)} states')",
    "model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})",
    "x = copy.deepcopy(optimizer.state_dict())",
    "for p in zip(*(m.parameters() for m in [model, model])):\n    p[0].grad = torch.zeros_like(p[0])",
    "x = torch.optim.lr_scheduler.StepLR(optimizer, 2)\nx.base_lrs = [2 * rate for rate in x.base_lrs]",
    "model[1].reset_parameters()",
])  # fmt: skip
def test_a_plain_line_is_plain(line: str) -> None:
    assert in_step(line, "import copy") == ()


NET = """class Net(nn.Module):
    def __init__(self, other=None):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.blocks = nn.ModuleList()
{init}
    def forward(self, x):
{forward}        return self.fc(x)
{method}"""


def net(init: str = "pass", forward: str = "", method: str = "") -> str:
    """Return a student's own network with lines in its methods, or with another method."""
    forward = "".join(f"        {line}\n" for line in forward.split("\n") if line)
    method = "".join(f"    {line}\n" for line in method.split("\n") if line)
    init = "".join(f"        {line}\n" for line in init.split("\n"))
    return NET.format(init=init, forward=forward, method=method)


def manager(body: str, decorator: str = "@contextmanager") -> str:
    """Return a student's own context manager."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"from contextlib import contextmanager\n{decorator}\ndef evaluating(model):\n{lines}"


EVALUATING = manager("mode = model.training\nmodel.eval()\ntry:\n    yield model\nfinally:\n    model.train(mode)")
WITH = "with evaluating(model) as network:\n    x = network(inputs)"


@pytest.mark.parametrize("lines", [
    net("for i in range(2):\n    self.add_module(f'part_{i}', nn.ReLU())\n    self.blocks.append(nn.Linear(2, 2))"),
    net("self.register_buffer('mask', torch.ones(4), persistent=False)"),
    net(method="def train(self, mode=True):\n    super().train(mode)\n    self.fc.eval()\n    return self"),
    net("self.scale = nn.Parameter(torch.empty(3))\nnn.init.ones_(self.scale)"),
    net("for block in self.blocks:\n    block.load_state_dict(self.blocks[0].state_dict())"),
    net() + "def f():\n    made = Net()\n    made.fc[0] = nn.ReLU()\n    made.fc = nn.Linear(8, 8)\n    return made",
    "import math\nWIDTH = 4\nDEVIATION = 0.5 / math.sqrt(WIDTH)",
    "def f():\n    torch.default_generator.set_state(torch.random.get_rng_state())",
])  # fmt: skip
def test_plain_definitions_are_plain(lines: str) -> None:
    assert at_top(lines) == ()


def test_a_context_manager_of_the_students_own_is_plain() -> None:
    assert in_step(WITH, EVALUATING) == ()
    assert in_step(WITH, manager("model.eval()\nyield model\nmodel.train()")) == ()


# Similar code that could keep or reach an object.
MANAGERS = {
    "kept": (EVALUATING, "kept = evaluating(model)"),
    "as a value": (EVALUATING, "f = evaluating"),
    "handed on": (EVALUATING, "x = list(map(evaluating, [model]))"),
    "by `next`": (EVALUATING, "next(evaluating(model))"),
    "as a decorator": (EVALUATING + "\n@evaluating(1)\ndef f(x):\n    return x", "pass"),
    "a plain generator": (manager("yield model", "@torch.no_grad()"), "x = evaluating(model)"),
    "two yields": (manager("yield model\nyield model"), WITH),
    "a yield in a loop": (manager("for _ in range(2):\n    yield model"), WITH),
    "a yield with a value": (manager("x = yield model"), WITH),
    "errors caught": (manager("try:\n    yield model\nexcept ValueError:\n    pass"), WITH),
    "another decorator": (manager("yield model", "@contextmanager\n@torch.no_grad()"), WITH),
    "contextmanager called": (EVALUATING, "x = contextmanager(print)"),
    "contextmanager as a value": (EVALUATING, "x = contextmanager"),
    "in a function": (EVALUATING, "@contextmanager\ndef g():\n    yield 1\nwith g():\n    pass"),
    "a body that reaches out": (manager("model.calls = 1\nyield model"), WITH),
    "a harness name": (EVALUATING.replace("def evaluating", "def predict"), "pass"),
}


@pytest.mark.parametrize("name", MANAGERS)
def test_a_generator_is_nothing_but_a_context(name: str) -> None:
    top, lines = MANAGERS[name]
    assert in_step(lines, top)


CLASSES = [
    net("self.add_module('forward', nn.ReLU())"),
    net("self.add_module(f'{2}', nn.ReLU())"), net("self.add_module(f'for{2}', nn.ReLU())"),
    net("self.add_module(f'part_{other}', nn.ReLU())"), net("self.add_module('part', other)"),
    net(forward="self.add_module('part', nn.ReLU())"), net(forward="self.blocks.append(nn.ReLU())"),
    net("self.blocks.append(iter([1]))"), net("self.blocks = other\nself.blocks.append(nn.ReLU())"),
    net(method="def train(self, mode=True):\n    return super().train(False)"),
    net(method="def train(self, mode=True):\n    super().train(mode)\n    print(mode)\n    return self"),
    net(method="def train(self, mode=True):\n    super().train(mode)\n    self.eval()\n    return self"),
    net(method="def eval(self):\n    super().train(False)\n    return self"),
    net("self.n = torch.zeros(3)\nself.n[0] = 1", forward="self.n[0] += 1"), net(forward="self.fc[0] = nn.ReLU()"),
    net("self.load_state_dict(other, assign=True)"),
    net() + "def f(given):\n    made = Net(given)\n    made.fc[0] = nn.Linear(8, 9)",
    net() + "def f(given):\n    made = Net()\n    made.forward = nn.Linear(8, 9)",
    net() + "def f(given):\n    made = Net()\n    made.fc = [nn.ReLU()]",
    net() + "def f(given):\n    made = Net()\n    made.fc = given\n    made.fc[0] = nn.ReLU()",
    net() + "def f(given):\n    made = Net()\n    made.fc[0] = given\n    made.fc[0][0] = nn.ReLU()",
    net() + "def f(given):\n    made = Net()\n    made.add_module('fc', given)\n    made.fc[0] = nn.ReLU()",
    net() + "def f(given):\n    made, other = Net(), 1\n    made.fc[0] = nn.ReLU()",
    net() + "def f(given):\n    made = Net()\n    other = made\n    other.add_module('fc', given)\n"
    "    made.fc[0] = nn.ReLU()",
    net() + "def g(other, given):\n    other.add_module('fc', given)\ndef f(given):\n    made = Net()\n"
    "    g(made, given)\n    made.fc[0] = nn.ReLU()",
    net() + "def f(given):\n    made = Net()\n    def g():\n        return made\n"
    "    g().add_module('fc', given)\n    made.fc[0] = nn.ReLU()",
    "def f():\n    class N(nn.Module):\n        def train(self):\n            return 1",
    net() + "def f(given):\n    made = Net()\n    made.fc[0] = iter([1])",
    net() + "def f(given):\n    made = Net()\n    made = given\n    made.fc[0] = nn.ReLU()",
    net() + "def f(given):\n    for made in [Net(), given]:\n        made.fc[0] = nn.ReLU()",
    "def f():\n    return 1\nf = 3", "SEED = torch.Generator().manual_seed(0)",
    "import math\nX = math.sqrt(exec('1'))",
]  # fmt: skip


@pytest.mark.parametrize("lines", CLASSES)
def test_definitions_that_keep_or_reach_something_are_not_plain(lines: str) -> None:
    assert at_top(lines)


LAMBDA = "s = torch.optim.lr_scheduler.LambdaLR(optimizer, g)"
INNER = {
    "on the optimizer": "def g():\n    pass\noptimizer.step = g",
    "on a network": "def g(x):\n    return x\nmodel.forward = g",
    "as a hook": "def g(x):\n    return x\nloss.register_hook(g)",
    "in a list": "def g():\n    pass\nx = [g]",
    "returned": "def g():\n    pass\nreturn g",
    "a closure for step": "def g():\n    return loss\noptimizer.step(g)",
    "a harness name": "def compute_loss(a, b):\n    return a",
    "the name of a function of the file": "def load_data():\n    pass",
    "the name of a module": "def F():\n    pass",
    "Python's name": "def len(x):\n    return 1",
    "two of one name": "def g():\n    return 1\ndef g():\n    return model",
    "a name that is something else, too": "def g():\n    return 1\ng = model",
    "a default that keeps something": "seen = []\ndef g(x=seen):\n    return x",
    "a default list": "def g(x=[]):\n    return x",
    "a name of the outer function": "n = 0\ndef g():\n    nonlocal n\n    n += 1",
    "a global name": "def g():\n    global EPOCHS\n    EPOCHS = 3",
    "an attribute of its own": "def g():\n    pass\ng.calls = 1",
    "its closure": "def g():\n    return loss\nx = g.__closure__",
    "a generator": "def g():\n    yield 1\nx = list(g())",
    "a body that reaches out": "def g():\n    open('x')\ng()",
    "a decorator": "@print\ndef g():\n    pass",
    "an annotation": "def g(x: exec('1')):\n    pass",
    "a method call on the outer network": "def g():\n    model.append(nn.ReLU())\ng()",
    "a network given": "def g(m):\n    m.append(nn.ReLU())\ng(model)",
    "a network returned": "def g():\n    return model\ng().append(nn.ReLU())",
    "a group returned": "def g():\n    return optimizer.param_groups[0]\ng()['calls'] = 1",
    "a schedule that counts": f"seen = []\ndef g(step):\n    seen.append(step)\n    return 1.0\n{LAMBDA}",
    "a schedule that reads a list": f"seen = [1]\ndef g(step):\n    return seen[0]\n{LAMBDA}",
    "a schedule that reads a tensor": f"def g(step):\n    return loss\n{LAMBDA}",
    "a schedule that calls": f"def h():\n    return 1.0\ndef g(step):\n    return h()\n{LAMBDA}",
    "a schedule with a function": f"def g(step):\n    def h():\n        pass\n    return 1.0\n{LAMBDA}",
    "a schedule that stores": f"def g(step):\n    optimizer.calls = step\n    return 1.0\n{LAMBDA}",
    "a schedule that adds to a list": f"seen = []\ndef g(step):\n    x = seen\n    x += [1]\n    return 1.0\n{LAMBDA}",
}


@pytest.mark.parametrize("name", INNER)
def test_a_function_in_a_function_is_only_called(name: str) -> None:
    assert in_step(INNER[name])


KEPT = {
    "memory": ["x = torch.empty(3, out=inputs).zero_()", "torch.zeros(3, out=inputs)"],
    "objects": [
        "x = id(model)", "x = id(model) % 2", "x = id(model) < 3", "x = [id(model)]", "x = [slice(2)]",
        "print(slice(2))",
        "s = slice(2)\nprint(s)", "s = slice(2)\ns = 3", "s = slice(2).start", "x = inputs.numpy()",
        "x = inputs.numpy().tobytes('F')", "x = inputs.numpy().tofile('x')",
    ],
    "settings": [
        "s = {'lr': iter([1])}\nx = torch.optim.SGD(model.parameters(), **s)", "s = {'file': 1}\nprint(**s)",
        "s = {}\ns['lr'] = iter([1])\nx = torch.optim.SGD(model.parameters(), **s)", "F.relu(inputs, **{'out': loss})",
        "x = torch.optim.SGD(model.parameters(), **optimizer.param_groups[0])",
        "x = torch.optim.lr_scheduler.LambdaLR(optimizer, **{'lr_lambda': 1})", "torch.zeros(3, **{'out': inputs})",
        "x = torch.utils.data.DataLoader(inputs, **{'num_workers': 2})",
    ],
    "optimizers": [
        "x = optimizer.state", "if len(optimizer.state):\n    loss = loss * 2", "print(optimizer.state)",
        "print(model.eval() if len(optimizer.state) else 1)", "optimizer.defaults['lr'] = 1", "del optimizer.state",
        "optimizer.defaults.update(n=1)", "d = optimizer.defaults\nd |= {'n': 1}", "optimizer.base_lrs = [0.1]",
        "s = torch.optim.lr_scheduler.StepLR(optimizer, 2)\ns.base_lrs = [model]",
        "s = torch.optim.lr_scheduler.StepLR(optimizer, 2)\ns.base_lrs.append(1)",
        "optimizer.load_state_dict(optimizer.state_dict())", "for part in (model, optimizer):\n    part.calls = 1",
        "for part in (model, optimizer):\n    part.load_state_dict({})",
        "x = copy.deepcopy(optimizer.param_groups[0])\nx['calls'] = 1",
    ],
    "networks": [
        "model[1] = nn.Linear(2, 2)", "m = model\nm[1] = nn.ReLU()", "m = nn.Sequential(model)\nm[0][1] = nn.ReLU()",
        "m = copy.copy(model)\nm[1] = nn.ReLU()", "model.load_state_dict({'a': loss}, assign=True)",
        "model.load_state_dict({'a': model})", "nn.modules.utils.consume_prefix_in_state_dict_if_present(model, 'a')",
        "m = copy.deepcopy(model)\nm[1] = iter([1])", "m = copy.deepcopy(model)\nm['a'] = nn.ReLU()",
    ],
    # Each of these edits once hid an object from the kinds of names.
    "names": [
        "x = [0 for TABLE in [{}]]\nTABLE['a'] = TABLE['a'] + 1",
        "x = sorted([1], key=lambda TABLE: 1)\nTABLE['a'] = 2",
        "x = {0: 1 for TABLE in [{}]}\nTABLE.update(a=2)",
        "for a in zip(*[[g for g in optimizer.param_groups]]):\n    a[0]['calls'] = 1",
        "for i, g in enumerate(*[[g for g in optimizer.param_groups]]):\n    g['calls'] = 1",
        "def g(x):\n    x['calls'] = 1\nx = list(map(g, *[[g for g in optimizer.param_groups]]))",
        "x = []\nx.append(*[model])\nx[0].append(nn.ReLU())",
        "x = [[[]]]\nx[0].append(model)\nx[0][1].append(nn.ReLU())",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", [line for lines in KEPT.values() for line in lines])
def test_what_is_next_to_plain_lines_is_not_plain(lines: str) -> None:
    assert in_step(lines, "import copy\nTABLE = {'a': 1}")


# Lines before the result of `prepare_batch`, which gets the run's own generator, and lines in a method that counts.
GIVEN = {
    "torch.Generator().manual_seed(0)": True, "rng.manual_seed(0)": False,
    "made = torch.Generator()\n    made = rng\n    made.manual_seed(0)": False,
    "def seed(one):\n        one.manual_seed(0)\n    seed(rng)": False,
}  # fmt: skip
COUNTED = {"self.seen = size": True, "self.seen = [size]": False, "self.__class__ = size": False, "self.add = 1": False}


@pytest.mark.parametrize("lines", GIVEN)
def test_only_a_generator_of_this_call_is_seeded(lines: str) -> None:
    end = "    return inputs, labels\n"
    assert (plain_edit(MLP, edited(MLP, (end, f"    {lines}\n{end}"))) == ()) == GIVEN[lines]


@pytest.mark.parametrize("lines", COUNTED)
def test_an_object_that_counts_may_count_another_number(lines: str) -> None:
    last = "        self.counted += size\n"
    assert (plain_edit(COUNTING, edited(COUNTING, (last, f"{last}        {lines}\n"))) == ()) == COUNTED[lines]


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


# Each of these could reach the recorder or the checks, or keep data from one call to the next.
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
    """`import math as m` in one function would make `m.anything` in another function look like a name of math."""
    lines = "def f(m):\n    return m.exp\ndef g():\n    import math as m\n    return m.exp(1)"
    assert any("a second value for" in item for item in at_top(lines))


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


def test_the_main_block_of_a_script_is_checked_because_it_runs() -> None:
    broken = load_recipe("logits_rounded").broken_source()
    start = 'if __name__ == "__main__":\n'
    assert broken.count(start) == 1
    found = plain_edit(broken, broken.replace(start, f"{start}    torch.save = print\n"))
    assert {one.line for one in found} == {broken[: broken.index(start)].count("\n") + 2}


def test_a_file_of_another_form_is_not_plain() -> None:
    functions, script = load_recipe("huge_lr").broken_source(), load_recipe("logits_rounded").broken_source()
    for broken, submitted in ((functions, script), (script, functions)):
        assert [one.message for one in plain_edit(broken, submitted)] == [
            "the file is no longer a script, or has become one"
        ]
    main = '\n\nif __name__ == "__main__":\n    torch.save = print\n'
    assert not is_script(functions + main)  # so the harness never runs the block
    assert plain_edit(functions, functions + main) == ()


def test_honest_edits_of_scripts_are_plain() -> None:
    recipe = load_recipe("plateau_per_batch")
    broken = recipe.broken_source()
    for fix in known_fixes(recipe)[0]:
        if fix.verdict == "full":
            assert plain_edit(broken, fix.source) == (), fix.id
    closure = edited(
        recipe.healthy_source(), ("            optimizer.step()\n", "            optimizer.step(loss.item)\n")
    )
    assert plain_edit(broken, closure)


def test_a_call_may_keep_the_dictionary_that_it_already_spreads() -> None:
    script, call = experiment_source("demand_forecast"), "load_checkpoint(ckpt_file, shuffle_rng, **parts)"
    same = edited(script, (call, "load_checkpoint(ckpt_file, shuffle_rng, averages=optimizer, **parts)"))
    other = edited(script, (call, "load_checkpoint(ckpt_file, shuffle_rng, **vars(args))"))
    assert plain_edit(script, same) == ()
    assert any("`**`" in item.message for item in plain_edit(script, other))


def test_a_generator_that_the_script_seeds_may_be_saved_and_restored() -> None:
    healthy = experiment_source("demand_forecast")
    saved, restored = "shuffle_rng_state=shuffle_rng.get_state()", 'shuffle_rng.set_state(ckpt["shuffle_rng_state"])'
    seeded = edited(
        healthy,
        (saved, "shuffle_rng_state=shuffle_rng.initial_seed()"),
        (restored, 'shuffle_rng.manual_seed(ckpt["shuffle_rng_state"])'),
    )
    other = [(text.replace("shuffle_rng_state", "order"), text) for text in (saved, restored)]
    assert plain_edit(seeded, edited(healthy, *((old, new) for new, old in other))) == ()
    assert plain_edit(seeded, edited(seeded, ("initial_seed()", "clone_state()"))) != ()
