"""The tables of the grammar cover Python and name only existing things; new attacks, and honest edits."""

import ast
import importlib
import inspect
import io
import logging
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from helpers.mini_experiments import COUNTING, edited
from torch import nn

from grader.syntax import grammar
from grader.syntax.allowed import HARMLESS_ATTRIBUTES, HARMLESS_METHODS, MODULE
from grader.syntax.plain_edit import _StatementJudge, plain_edit
from harness.recipes.recipe import experiment_source

MLP, LORA, MIXUP = map(experiment_source, ("digits_mlp", "digits_lora", "digits_mixup"))
RULES = {"visit", "block", "check", "name", "free", "empty"}
STEP, TOP = "    optimizer.step()\n", "EPOCHS = 5\n"


def node_classes() -> Iterator[type[ast.AST]]:
    """Yield every class of nodes that the parser of this Python version can make."""
    waiting = [ast.AST]
    while waiting:
        found = waiting.pop()
        # Python 3.8 kept some classes only as aliases.
        children = [child for child in found.__subclasses__() if child.__module__ in ("ast", "_ast")]
        waiting += children
        old = found.__doc__ is not None and "eprecated" in found.__doc__
        if not children and not old and found is not ast.AST:
            yield found


def test_every_class_and_field_of_pythons_syntax_has_an_entry() -> None:
    fieldless = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
    seen = set()
    for node in node_classes():
        seen.add(node.__name__)
        if issubclass(node, fieldless):
            assert node._fields == ()
        elif node.__name__ not in grammar.REFUSED:
            rules = grammar.SYNTAX[node.__name__]
            assert set(node._fields) <= rules.keys(), node
            assert set(rules.values()) <= RULES
    assert {"FunctionDef", "comprehension", "MatchAs", "Add", "withitem"} <= seen


def test_a_field_that_a_check_looks_at_has_a_check() -> None:
    for name, rules in grammar.SYNTAX.items():
        if "check" in rules.values() and name != "alias" and name != "keyword":
            assert hasattr(_StatementJudge, f"_check_{name}"), name
    # The blocks of a statement contain statements that are judged separately.
    blocks = {field for rules in grammar.SYNTAX.values() for field, rule in rules.items() if rule == "block"}
    assert blocks == {"body", "orelse", "finalbody"}


def test_what_has_no_entry_is_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    source = edited(MLP, (STEP, f"{STEP}    print([loss for _ in range(1)])\n"))
    assert plain_edit.__wrapped__(MLP, source) == ()
    for name in ("ListComp", "comprehension", "Call", "Expr"):
        with monkeypatch.context() as patched:
            patched.delitem(grammar.SYNTAX, name)
            assert plain_edit.__wrapped__(MLP, source) != ()
    with monkeypatch.context() as patched:
        patched.setitem(grammar.SYNTAX, "comprehension", {"target": "visit", "iter": "visit", "is_async": "empty"})
        assert plain_edit.__wrapped__(MLP, source.replace("range(1)]", "range(1) if loss]")) != ()


def test_every_listed_name_is_one_of_the_installed_library() -> None:
    """Without this test, nobody would notice a name that a library has removed."""
    for module, listed in grammar.LISTED.items():
        is_object = module == "torch.default_generator"
        owner = torch.default_generator if is_object else importlib.import_module(module)
        assert [name for name in sorted(listed) if not hasattr(owner, name)] == []


def test_a_network_of_the_students_own_redefines_nothing_of_a_network() -> None:
    """New names in a release of torch must not be redefined either."""
    ours = {name for name in dir(nn.Module()) if not name.startswith("__")}
    assert ours <= MODULE


def test_nothing_powerful_has_a_harmless_attribute() -> None:
    """Code may read these attributes of any object. On a function, frame, module or file they must be harmless."""
    a_frame = inspect.currentframe()
    assert a_frame is not None
    powerful = [
        test_nothing_powerful_has_a_harmless_attribute, print, ast, sys, type, (item for item in [1]), a_frame,
        a_frame.f_code, logging.getLogger(), io.StringIO(), io.BytesIO(), Path(), RuntimeError(), OSError(),
        types.TracebackType, classmethod, property, threading.Thread(),
    ]  # fmt: skip
    harmless = HARMLESS_ATTRIBUTES.keys() | HARMLESS_METHODS.keys()
    found = {(type(item).__name__, name) for item in powerful for name in harmless & set(dir(item))}
    # All of these are harmless: `name` is a string, and plain code cannot call sys.modules. It reaches only a logger.
    assert found == {
        ("RootLogger", "name"), ("RootLogger", "log"), ("PosixPath", "name"), ("Thread", "name"), ("Thread", "join"),
        ("StringIO", "detach"), ("BytesIO", "detach"), ("module", "modules"),
    }  # fmt: skip


# Each attack: the experiment, and edits of it.
Edits = tuple[tuple[str, str], ...]


def in_step(lines: str, top: str = "") -> tuple[str, Edits]:
    indented = "".join(f"    {line}\n" for line in lines.split("\n"))
    return MLP, ((STEP, STEP + indented), (TOP, f"{top}\n{TOP}"))


def at_top(lines: str) -> tuple[str, Edits]:
    return MLP, ((TOP, f"{lines}\n{TOP}"),)


NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)
{init}
    def forward(self, x):
{forward}        return self.fc(x)
"""


def net(init: str = "", forward: str = "") -> str:
    return NET.format(init=f"        {init}\n" if init else "", forward=f"        {forward}\n" if forward else "")


ATTACKS = {
    "a field named like a generator's frame": in_step(
        "P(1).gi_frame\nframe = (x for x in [1]).gi_frame",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    gi_frame: int\n",
    ),
    "a field of its own asked of an error": in_step(
        "try:\n    loss.nothing\nexcept AttributeError as error:\n    x = error.obj",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    obj: int\n",
    ),
    "an argument of super": at_top(net().replace("super()", "super(exec('1'), self)")),
    "an argument of the base's __init__": at_top(net().replace("__init__()", "__init__(exec('1'))")),
    "the annotation of *args": at_top("def f(*args: exec('1')):\n    return args"),
    "the annotation of **kwargs": at_top("def f(**kwargs: exec('1')):\n    return kwargs"),
    "a for that sets an attribute": in_step("for optimizer.step in [model]:\n    pass"),
    "a comprehension that sets an attribute": in_step("x = [0 for F.cross_entropy in [model]]"),
    "a comprehension that sets an entry": in_step("x = [0 for labels[0] in [1]]"),
    "a with that sets an attribute": in_step("with torch.no_grad() as model.calls:\n    pass"),
    "a starred target": in_step("first, *model.rest = inputs"),
    "a walrus over a builtin": in_step("print(len := model)"),
    "a walrus in a default": at_top("def f(x=(calls := 0)):\n    return x"),
    "a condition of a comprehension": in_step("x = [0 for y in inputs if exec('1')]"),
    "a log file": at_top("import logging\nlogging.basicConfig(filename='/tmp/seen')"),
    "a log handler": at_top("import logging\nlogging.basicConfig(handlers=[logging.FileHandler('x')])"),
    "the level of a logger as a flag": in_step("log.setLevel(10)", "import logging\nlog = logging.getLogger('x')\n"),
    "the memory of deepcopy": in_step("copy.deepcopy(inputs, MEMO)", "import copy\nMEMO = {}\n"),
    "a constant table under another name": in_step("h = H\nh |= {'n': h['n'] + 1}", "H = {'n': 0}\n"),
    "an entry lr of a constant table": in_step("H['lr'] = H['lr'] + 1", "H = {'lr': 0}\n"),
    "a list by the name of another function's": in_step(
        "seen = H\nseen.append(1)", "H = (1, 2)\ndef g():\n    seen = []\n    return seen\n"
    ),
    "a network in a list": in_step("m = [model]\nm[0].append(nn.Identity())"),
    "an iterator in a parameter group": in_step("n = next(optimizer.param_groups[0]['seen'])"),
    "a parameter group in pairs": in_step("x = [value for value in optimizer.param_groups[0].values()]"),
    "a parameter group copied": in_step("x = {**optimizer.param_groups[0]}"),
    "a layer that keeps an iterator": in_step("n = next(nn.BatchNorm1d(4, momentum=iter(range(9))).momentum)"),
    "a network as the closure of step": in_step("optimizer.step(model)"),
    "a network as a schedule": in_step("s = torch.optim.lr_scheduler.LambdaLR(optimizer, model)"),
    "a network as a scale function": in_step(
        "s = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, scale_fn=model)"
    ),
    "a schedule by another name": in_step("make = torch.optim.lr_scheduler.LambdaLR\nmake(optimizer, model)"),
    "a default of a schedule's lambda": in_step(
        "s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step, x=[]: 1)"
    ),
    "a schedule that reads a weight": in_step(
        "w = model[1].bias[0]\ns = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(w))"
    ),
    "processes of a data loader": in_step("x = DataLoader(inputs, num_workers=2)",
                                          "from torch.utils.data import DataLoader\n"),
    "a file for print": in_step("print(loss, file=model)"),
    "a field of a format": in_step("print('{0.grad_fn}'.format(loss))"),
    "a format in a format": in_step("print('{:{}}'.format(loss, exec))"),
    "a format of an f-string": in_step("print(f'{loss:{exec(1)}}')"),
    "the mode of autograd as a flag": in_step("torch.set_grad_enabled(False)"),
    "a class by a call": at_top("from typing import NamedTuple\nX = NamedTuple('X', [('a', int)])"),
    "dataclass as a function": in_step("dataclass(nn.Linear)", "from dataclasses import dataclass\n"),
    "an argument of a decorator": at_top("@torch.no_grad(exec('1'))\ndef f():\n    return 1"),
    "a slice": in_step("x = inputs[: exec('1')]"),
    "a caught error": in_step("try:\n    loss.item()\nexcept exec('1'):\n    pass"),
    "the message of an assert": in_step("assert loss, exec('1')"),
    "the cause of an error": in_step("raise ValueError from exec('1')"),
    "a keyword default": at_top("def f(*, x=[]):\n    return x"),
    "the hooks of every network": at_top(net(init="self._forward_hooks = 1")),
    "a hook of a network by an own name": at_top(net(forward="x = self._call_impl(x)")),
    "an attribute of every network": at_top(net(init="self.named_parameters = 1")),
    "a buffer outside of __init__": at_top(net(forward="self.register_buffer('n', x)")),
    "an iterator in an annotation": at_top("X: iter([1]) = 1"),
    "an iterator in the annotation of a result": at_top("def f() -> iter([1]):\n    return 1"),
    "layers that are said to rest": at_top("FROZEN = ('1.',)"),
    "layers that are no longer said to rest": (LORA, (('FROZEN = ("0.linear.",)', "FROZEN = ()"),)),
    "the else of the block that never runs": at_top("if __name__ == '__main__':\n    pass\nelse:\n    exec('1')"),
    "a counter of the experiment's at the top": (COUNTING, (("EPOCHS = 3\n", "EPOCHS = 3\nTALLY = Tally()\n"),)),
    "a for that keeps a list in a network": at_top(net(init="for self.seen in [[]]:\n            pass")),
    "a table kept in a network": at_top(net(init="self.seen = {'n': 0}", forward="self.seen['n'] = 1")),
    "a layer of a network grows": in_step(
        "model.net.append(nn.ReLU())",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.net = nn.Sequential(nn.ReLU())\n    def forward(self, x):\n        return self.net(x)\n",
    ),
    "a loss at the top grows": in_step("criterion.add_module('a', nn.ReLU())", "criterion = nn.MSELoss()\n"),
    "a shallow copy of a network grows": in_step("copy.copy(model).append(nn.ReLU())", "import copy\n"),
    "a layer's list changes in place": in_step("m = nn.LayerNorm(4, eps=[]).eps\nm += labels"),
    "an iterator in a record": in_step(
        "n = asdict(C(iter([1, 2])))['x']", "from dataclasses import asdict, dataclass\n@dataclass\nclass C:\n"
            "    x: int = 1\n"
    ),
    "an iterator for each group": (MLP, (
        ("SGD(model.parameters(), lr=0.1", "SGD([{'params': model.parameters(), 'seen': iter([1])}], lr=0.1"),
    )),
    "the last rates of a schedule": in_step("s = torch.optim.lr_scheduler.StepLR(optimizer, 2)\n"
        "s.get_last_lr().append(1)"),
    "a number kept in forward": at_top(net(forward="self.n = 1")),
    "a function of the file handed to a builtin": in_step("print(train_step)"),
    "a bound method as a value": in_step("f = [loss.backward]"),
    "the mode of every layer by name": in_step("for m in model.modules():\n    m.training = True"),
    "a counter of the experiment's in a network": (COUNTING, (
        ("        self.head = nn.Linear(16, 10)\n",
         "        self.head = nn.Linear(16, 10)\n        self.tally = Tally()\n"),
    )),
    "a statement of the experiment's in another class": (COUNTING, (
        ("        x = self.hidden(", "        size = len(x)\n        self.counted += size\n        x = self.hidden("),
    )),
    "a table kept where a number was": (COUNTING, (
        ("        self.counted += size\n", "        self.counted += [size]\n"),
    )),
    "a schedule's attributes by its state": (MIXUP, (
        ('scheduler.load_state_dict(ckpt["scheduler"])', 'scheduler.load_state_dict({"step": model})'),
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_not_plain(name: str) -> None:
    source, edits = ATTACKS[name]
    ast.parse(edited(source, *edits))
    assert plain_edit(source, edited(source, *edits)) != ()


INIT = """def init(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight, nonlinearity='relu')
        nn.init.zeros_(m.bias)

"""
HONEST = {
    "initializes by apply": in_step("model.apply(init)", INIT),
    "initializes layer by layer": in_step("for layer in model.modules():\n    init(layer)", INIT),
    "initializes by map": in_step("done = list(map(init, model))", INIT),
    "eval by apply": in_step("model.apply(lambda m: m.eval())"),
    "trainable parameters by filter": in_step("ps = list(filter(lambda p: p.requires_grad, model.parameters()))"),
    "sorted by a key": in_step("order = sorted(labels.tolist(), key=lambda k: -k)\nprint(order[0])"),
    "a list in a method": at_top(net(forward="outs = []\n        outs.append(x.mean())\n        x = x + sum(outs)")),
    "a list in a helper": in_step(
        "values = []\ncollect(values, loss.item())\nprint(values)", "def collect(values, x):\n"
            "    values.append(x)\n\n"
    ),
    "a counter": in_step("counts = Counter(labels.tolist())\ncounts.update([1])\nprint(counts.most_common(2))",
                         "from collections import Counter\n"),
    "lists by label": in_step("found = defaultdict(list)\nfor y in labels.tolist():\n    found[y].append(1)",
                              "from collections import defaultdict\n"),
    "labels counted in a print": in_step("print(torch.bincount(labels, minlength=10), torch.quantile(loss, 0.5))"),
    "an old format": in_step("print('loss {:.3f} {name}'.format(loss.item(), name=1))"),
    "a walrus": in_step("if (norm := loss.item()) > 5:\n    print(norm)"),
    "a set": in_step("names = {name for name, _ in model.named_parameters()}\nprint(len(names), {1, 2} & {2})"),
    "settings as a table": (MLP, (
        (TOP, f"SETTINGS = {{'lr': 0.1, 'momentum': 0.9}}\n{TOP}"),
        ("model.parameters(), lr=0.1, momentum=0.9", "model.parameters(), **SETTINGS"),
    )),
    "a step by hand": in_step("for p in model.parameters():\n    p.data -= 0.1 * p.grad\n    p.grad = None"),
    "two groups": (MLP, (
        ("    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n",
         "    decay, others = [], []\n    for name, p in model.named_parameters():\n        if p.dim() > 1:\n"
         "            decay.append(p)\n        else:\n            others.append(p)\n"
         "    groups = [{'params': decay, 'weight_decay': 1e-4}, {'params': others, 'weight_decay': 0.0}]\n"
         "    return torch.optim.SGD(groups, lr=0.1, momentum=0.9)\n"),
    )),
    "layers added one by one": at_top(
        "def make():\n    net = nn.Sequential(nn.Flatten())\n    for _ in range(2):\n"
            "        net.append(nn.Linear(4, 4))\n"
        "    net.add_module('head', nn.Linear(4, 2))\n    return net"
    ),
    "weights before and after": in_step("before = {k: v.clone() for k, v in model.state_dict().items()}\n"
        "print(before)"),
    "an older super": at_top(net().replace("super()", "super(Net, self)")),
    "a private constant": at_top(net(init="self._scale = 0.5", forward="x = x * self._scale + self._half(x)")
                                 + "\n    def _half(self, x):\n        return x / 2\n"),
    "a buffer": at_top(
        net(init="self.register_buffer('mask', torch.tril(torch.ones(4, 4)))", forward="x = x * self.mask")
    ),
    "a residual block": at_top(net(forward="h = F.relu(self.fc(x))\n        x = x + h")),
    "a rate for each group": in_step("for i, group in enumerate(optimizer.param_groups):\n"
        "    group['lr'] *= 0.5\n    print(i, group['lr'])"),
    "a warm-up": in_step("s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))"),
    "a settings class": at_top("from dataclasses import dataclass\n@dataclass\nclass C:\n    rate: float = 0.1\n"
        "    depth: int = 2\n\nCFG = C(rate=0.2)\ndef f(m):\n"
        "    return torch.optim.SGD(m.parameters(), lr=CFG.rate * CFG.depth)"),
    "a batch with names": at_top("from typing import NamedTuple\nclass Batch(NamedTuple):\n    x: torch.Tensor\n"
        "    y: torch.Tensor\n\ndef f(x, y):\n    batch = Batch(x, y=y)\n    return batch.x.mean() + batch.y.sum()"),
    "a guard": in_step("try:\n    loss.item()\nexcept (RuntimeError, ValueError) as error:\n"
        "    print(f'{error}')\n    raise"),
    "a confusion table": in_step("table = torch.zeros(10, 10)\n"
        "for y, p in zip(labels, inputs.flatten(1).argmax(1)):\n    table[y, p] += 1\nprint(table.diagonal())"),
    "worst first": in_step("worst = max(model.parameters(), key=lambda p: p.grad.norm())\nprint(worst.shape)"),
    "a log": in_step("log.info('loss %.3f', loss.item())", "import logging\n"
        "logging.basicConfig(level=logging.INFO, format='%(message)s')\nlog = logging.getLogger(__name__)\n"),
    "the best of a copy": in_step("best = copy.deepcopy(model)\nbest.eval()\n"
        "print(best(inputs).mean())", "import copy\n"),
    "a sum of the experiment's": (COUNTING, (
        ("        self.counted += size\n", "        self.counted += int(right.numel())\n"),
        ("        self.total += compute_loss(outputs, labels).item() * size\n",
         "        losses = []\n        losses.append(compute_loss(outputs, labels).item() * size)\n"
         "        self.total += sum(losses)\n"),
    )),
    "a method called update": (COUNTING, (
        ("    def add(self, outputs, labels):", "    def update(self, outputs, labels):"),
        ("        self.total += compute_loss(outputs, labels).item() * size\n"
         "        self.right += int(right.sum())\n        self.counted += size\n",
         "        self.add(outputs, labels)\n"),
        ("        tally.add(model(x), y)\n", "        tally.update(model(x), y)\n"),
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_edit_is_plain(name: str) -> None:
    source, edits = HONEST[name]
    assert plain_edit(source, edited(source, *edits)) == ()
