"""Random edits of an experiment: like training code, with parts from the whole of Python's grammar."""

import ast
import builtins
import difflib
import re
from random import Random

from helpers.mini_experiments import edited

from grader.syntax.grammar import words
from harness.recipes.recipe import experiment_source

MLP = experiment_source("digits_mlp")
_STEP, _TOP, _EVALUATE = "    optimizer.step()\n", "EPOCHS = 5\n", "    outputs = model(inputs)\n"
_RELU, _SGD = "        nn.ReLU(),\n", "    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n"
_MOST_TRIES = 100

# Whatever a program reaches with one of these, it must not be plain.
_WIRES = (
    "globals()", "locals()", "vars(torch)", "dir()", "open('/tmp/x', 'w')", "eval('1')", "exec('1')", "input()",
    "compile('1', 'x', 'eval')", "getattr(model, 'forward')", "setattr(model, 'x', 1)", "__import__('os')",
    "().__class__", "torch.os", "torch.load", "torch._C", "train_step.__globals__", "(x for x in [1]).gi_frame",
    "type(model)", "nn.Module.__init__", "model._forward_hooks", "loss.grad_fn", "loss.register_hook(print)",
    "torch.set_num_threads(2)", "torch.set_default_dtype(torch.float64)", "optimizer.state", "memoryview(b'x')",
    "optimizer.step(model)", "F.importlib", "logging.FileHandler('x')", "breakpoint()", "delattr(model, 'x')",
    "model.register_forward_hook(print)", "classmethod(print)", "super", "error.obj", "P(1).gi_frame", "TABLE.pop('a')",
    "TABLE.update(a=2)", "model.append(nn.ReLU())", "optimizer.param_groups.append(1)", "print(1, file=model)",
    "inputs.numpy().tofile('x')", "torch.save(loss, '/tmp/x')", "{**optimizer.param_groups[0]}", "globals",
    "next(optimizer.param_groups[0]['seen'])", "log.setLevel(10)", "log.handlers", "torch.utils", "Net.forward",
)  # fmt: skip
# Expressions of training code.
_TENSORS = (
    "loss", "inputs", "labels", "model(inputs)", "loss.detach()", "inputs.mean()", "inputs.flatten(1)",
    "labels.float()",
    "torch.zeros(2)", "torch.arange(3)", "inputs.abs().max()", "model[1].weight", "F.relu(inputs)", "loss * 0.5",
    "compute_loss(model(inputs), labels)", "torch.randn(2, 2)", "inputs.std()", "model[1].bias", "labels.unique()",
    "torch.stack([loss, loss])", "F.one_hot(labels, 10)", "net.fc.weight", "Batch(loss, 1).x", "halve(loss)",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "2", "0.5", "-1", "len(labels)", "EPOCHS", "loss.item()", "RATE", "CFG.rate", "TABLE['a']", "True",
    "inputs.shape[0]", "labels.numel()", "int(labels.sum())", "max(1, 2)", "math.pi", "float(loss)", "count",
)  # fmt: skip
_OTHERS = (
    "model", "optimizer", "[1, 2]", "(1, 'a')", "{'a': 1}", "{1, 2}", "'text'", "f'{loss:.3f}'", "None", "print",
    "model.parameters()", "list(model.parameters())", "optimizer.param_groups", "model.named_parameters()", "CFG",
    "model.modules()", "range(2)", "zip(inputs, labels)", "enumerate(labels)", "nn.Linear(2, 2)", "nn.ReLU()", "net",
    "[p.grad for p in model.parameters()]", "TABLE", "log", "F.relu", "torch.float32", "time.time()", "values", "P(1)",
    "optimizer.param_groups[0]", "model.state_dict()", "copy.deepcopy(model)", "ValueError('x')", "Batch(1, 2)",
    "lambda x: x", "train_step", "halve", "Net", "torch.no_grad()", "model.train", "iter([1])", "int", "str",
)  # fmt: skip
_NAMES = (
    "x", "y", "values", "count", "total", "loss", "model", "optimizer", "self", "net", "TABLE", "p", "group", "name",
    "halve", "train_step", "torch", "F", "nn", "open", "len", "__name__", "__builtins__", "__class__", "_x", "Net",
    "EPOCHS", "weight", "grad", "data", "forward", "step", "training", "param_groups", "lr", "state", "gi_frame", "obj",
    "f_globals", "__globals__", "__dict__", "fc", "rate", "item", "update", "apply", "append", "key", "format",
)  # fmt: skip
_TARGETS = ("x", "y", "count", "(x, y)", "[x, *y]", "x, *values")
_STORES = (
    "model.calls", "labels[0]", "optimizer.step", "TABLE['a']", "p.grad", "group['lr']", "values[0]", "len", "F.relu",
    "model[1].weight.grad", "optimizer.param_groups[0]['lr']", "optimizer.param_groups[0]['x']", "self.n", "CFG.rate",
    "*x", "model.training", "net.fc", "x.data", "torch",
)  # fmt: skip
# {t}, {n}, {e}: a tensor, a number, anything; {v}: a target.
_IN_STEP = (
    "{v} = {e}", "{v} = {t}", "x = {n}", "print({e})", "print({t}, {n})", "x: {e} = {t}", "total = {n}\ntotal += {n}",
    "values = []\nvalues.append({t})", "values = [{e}]\nvalues += [{e}]", "if {n} > {n}:\n"
        "    {v} = {e}", "assert {n}, {e}",
    "for {v} in {e}:\n    print({e})", "for p in model.parameters():\n"
        "    p.grad = {t}", "x = [{e} for {v} in {e} if {n}]",
    "for group in optimizer.param_groups:\n    group['lr'] = {n}", "for group in optimizer.param_groups:\n"
        "    print({e})",
    "with torch.no_grad():\n    {v} = {t}", "with torch.no_grad() as {v}:\n    x = {e}", "with {e}:\n    x = {n}",
    "try:\n    {v} = {e}\nexcept ValueError as error:\n    print({e})", "try:\n    x = {t}\nexcept {e}:\n    pass",
    "x = {e}\nx |= {e}", "x = {e}\nx += {e}", "x = {{'a': {e}}}\nx['b'] = {e}\n"
        "print(x)", "raise {e}", "{e}", "{t}.backward()",
    "x = {{{n}: {e} for {v} in {e}}}", "x = sum({n} for {v} in {e})", "model.apply(halve)", "x = list(map(halve, {e}))",
    "x = sorted({e}, key=lambda k: {e})", "print(f'{{{e}!r:{{{n}}}}}')", "print('{{}}'.format({e}))", "x = ({e})[{n}]",
    "x = {t}[{n}:]", "x = {t} if {n} else {e}", "halve({e})", "x = halve({e})\nx.{m}", "x = {e}\n"
        "x.{m}", "x = {e}\nx.{m}({e})",
    "if (x := {e}) is not None:\n    print(x)", "x, y = {e}, {e}\n"
        "print(x, y)", "log.info('%s', {e})", "del x", "global EPOCHS",
    "net = Net()\nx = net({t})", "x = net.fc({t})", "nn.init.zeros_(model[1].bias)", "optimizer.zero_grad()\n"
        "loss = {t}",
    "s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: {n})", "x = copy.deepcopy({e})", "return {t}",
    "x = optimizer.param_groups[0]['lr']\nprint({e}, x)", "torch.manual_seed({n})", "x = {e}\nfor y in x:\n"
        "    {v} = y",
    "values = [model]\nvalues[0].{m}({e})", "values = [{e}]\nvalues.{m}({e})", "x = Batch({e}, {e})\nprint(x.{m})",
    "x = TABLE\nx['a'] = {n}", "x = {e}\nx.append({e})", "x = [{e}]\ny = x\ny.append({e})\nx[0].{m}({e})",
    "for x in {e}:\n    x.{m}({e})", "x = {e}\nx[0] = {e}", "x = {{'a': {e}}}\nfor y in x:\n"
        "    y.{m}({e})", "next({e})",
    "x = next(iter({e}))\nx.{m}({e})", "x = halve(TABLE)\nx |= {{'a': {n}}}", "values.append({e})\n"
        "values[0].{m}({e})",
    "def inner(x):\n    {v} = {e}\n    return {e}\nx = inner({e})\nx.{m}({e})",
    "def inner(x, y={n}):\n    x.{m}({e})\n    return {t}\nprint(inner({e}))", "def inner(x):\n"
        "    values.append({e})\n    values[0].{m}({e})\ninner({e})",
    "def inner(step):\n    x = {n}\n    return {n}\ns = torch.optim.lr_scheduler.LambdaLR(optimizer, inner)\ns.step()",
    "def inner(x):\n    return {e}\nx = list(map(inner, {e}))", "def inner(x):\n    return {e}\nx = {e}\nx.{m}(inner)",
    "def {m}(x):\n    return {e}\nx = {m}({e})", "def inner():\n    for {v} in {e}:\n        print({e})\ninner()",
    "def inner(x):\n    def other(y):\n        return {e}\n    return other({e})\nx = inner({e})\nx.{m}({e})",
    "x = {{'lr': {n}, 'momentum': {e}}}\ny = torch.optim.SGD(model.parameters(), **x)", "x = dict(bias={e})\n"
        "y = nn.Linear(2, 2, **x)", "x = {{'a': {e}}}\nhalve(**x)", "x = {{'{m}': {e}}}\nprint({e}, **x)",
    "with evaluating({e}) as {v}:\n    x = {e}", "with evaluating(model) as net:\n    net.{m}({e})\nnet.{m}({e})",
    "x = evaluating({e})\nx.{m}({e})", "with evaluating(model):\n    raise ValueError({e})", "part = slice({n}, {n})\n"
        "y = ({e})[part]\nprint(y.{m}, {t}[part])", "x = {{id(y) for y in {e}}}\nprint({e} in x, id({e}) in x)",
    "made = Net()\nmade.inner[{n}] = {e}\nmade.inner.{m}({e})",
    "made = Net()\nmade.fc = nn.Linear(784, 10)\nmade.{m} = nn.ReLU()\nmade({e})", "made = copy.deepcopy({e})\n"
        "made[0] = nn.ReLU()", "x = copy.deepcopy({e})\nx[{n}] = {e}\nx.{m}({e})",
    "x = torch.empty({n})\n{v} = {e}\nnn.init.ones_(x)", "x = torch.empty(2).{m}({e})", "model.load_state_dict({e})",
    "for part in (model, optimizer, {e}):\n    part.{m}({e})", "x = optimizer.defaults\nx.{m}({e})",
    "x = [{e} for TABLE in {e}]\nTABLE['a'] = {n}\nTABLE.{m}({e})", "for {v} in zip(*{e}):\n    x.{m}({e})",
    "for {v} in enumerate(*{e}):\n    x.{m}({e})", "print(f'{{len(optimizer.state)}} {{{e}}}')",
    "nn.Sequential({e})({t})", "print(*{e}, sep={e})", "x = torch.{m}({t})", "x = nn.{m}({n})", "x = F.{m}({t})",
)  # fmt: skip
_AT_TOP = (
    "RATE = {n}", "X = {e}", "X: {e} = {n}", "X = {{'a': {n}}}", "def helper(x: {e} = {n}, *y: {e}) -> {e}:\n"
        "    return {e}",
    "def helper(x, y={e}, *, z={n}):\n    count = {n}\n    return {e}", "@torch.no_grad()\ndef helper(x):\n"
        "    return {t}",
    "@{e}\ndef helper(x):\n    return x", "class Other(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n"
    "        self.fc = {e}\n\n    def forward(self, x):\n        self.{m} = {n}\n        return self.fc(x)",
    "class Other(nn.Module):\n    def __init__(self, width={n}):\n        super().__init__({w})\n"
    "        self.fc = nn.Linear(784, 4)\n        self.scale = {n}\n\n    def forward(self, x):\n"
        "        x = self.fc(x)\n"
    "        return x * self.scale + {e}",
    "class Other(nn.Module, {w}):\n    x = {e}", "class Other({e}):\n"
        "    x: {e} = {n}", "import {i}", "from {i} import {m}",
    "from dataclasses import dataclass\n@dataclass\nclass Other:\n    x: {e} = {n}\n    def get(self):\n"
        "        return self.x",
    "logging.basicConfig({w})", "for {v} in {e}:\n    pass", "{e}", "if {n}:\n    X = {e}", "X = Config(rate={n})",
    "def helper(x):\n    values = {e}\n    values.append({e})\n    return values", "async def helper():\n"
        "    return await {e}",
    "def helper():\n    yield {e}", "@contextmanager\ndef helper(x):\n    try:\n        yield {e}\n    finally:\n"
        "        {v} = {e}", "@contextmanager\ndef helper(x):\n    x = {e}\n    yield {e}\n    x.{m}({e})",
    "class Other(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Sequential(nn.Linear(784, 4))\n        self.fc.append(nn.ReLU())\n"
        "        self.add_module('{m}', nn.ReLU())\n\n    def train(self, mode=True):\n        super().train(mode)\n"
        "        self.fc.eval()\n        return self\n\n    def forward(self, x):\n        return self.fc(x) * {t}",
"def helper(x):\n    def inner():\n        return {e}\n    return inner",
)  # fmt: skip
_LAYERS = (
    "nn.BatchNorm1d(128, momentum={e})", "nn.Softmax(dim={e})", "nn.LeakyReLU({e})", "nn.Dropout({n})", "nn.{m}({e})",
    "nn.BatchNorm1d(128)", "nn.Sequential(nn.ReLU(), {e})", "nn.Identity({e})", "nn.LayerNorm(128, eps={e})", "{e}",
)  # fmt: skip
_OPTIMIZERS = (
    "return torch.optim.SGD({e}, lr={n})", "return torch.optim.Adam(model.parameters(), lr=0.001, fused={e})",
    "return torch.optim.SGD([{{'params': model.parameters(), 'lr': 0.1, 'seen': {e}}}])",
    "values = [p for p in model.parameters() if {n}]\nreturn torch.optim.SGD(values, lr=0.1, momentum={n})",
    "x = torch.optim.SGD(model.parameters(), lr=0.1)\nx.{m} = {e}\nreturn x",
    "x = torch.optim.SGD(model.parameters(), lr=0.1)\nx.param_groups[0]['lr'] = {n}\nx.{m}({e})\nreturn x",
)  # fmt: skip
# What programs may use: a helper, a network, tables of constants.
_FRAME = """
import copy
import logging
import math
from contextlib import contextmanager
import time
from dataclasses import dataclass
from typing import NamedTuple

log = logging.getLogger("run")
RATE = 0.1
TABLE = {"a": 1, "b": 0.5}


class P(NamedTuple):
    gi_frame: int


class Batch(NamedTuple):
    x: torch.Tensor
    obj: float = 0.5


@dataclass
class Config:
    rate: float = 0.1


CFG = Config(rate=0.2)


def halve(x):
    return x / 2 if isinstance(x, torch.Tensor) else x


@contextmanager
def evaluating(net):
    mode = net.training
    net.eval()
    try:
        yield net
    finally:
        net.train(mode)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)
        self.inner = nn.Sequential(nn.ReLU())

    def forward(self, x):
        return self.fc(x.flatten(1))
"""
_MODULES = (
    "os",
    "sys",
    "torch.os",
    "numpy",
    "math",
    "copy",
    "torch.nn",
    "harness.trainer",
    "torch",
    "time",
    "builtins",
)
_ARGUMENTS = ("filename='x'", "level=logging.INFO", "exec('1')", "x={e}", "*{e}", "**{e}", "metaclass={e}", "{e}", "")
BASE = edited(
    MLP,
    (_TOP, f"{_FRAME}\n{_TOP}"),
    ("    optimizer.zero_grad()\n", "    net, count, values = Net(), 0, []\n    optimizer.zero_grad()\n"),
)


class Programs:
    """A stream of edited experiments; the same seed gives the same stream."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._fields = _node_fields()

    def next(self) -> str:
        """Return an edited experiment that parses."""
        for _ in range(_MOST_TRIES):
            self._wildness = self._random.choice((0.0, 0.02, 0.1, 0.3))
            try:
                source = self._program()
                compile(source, "experiment.py", "exec")
            except (SyntaxError, ValueError, RecursionError):
                continue
            return source
        raise AssertionError("no program parses")

    def _program(self) -> str:
        draw = self._random
        top, step, evaluation = "", "", ""
        build, optimizer = _RELU, _SGD
        for _ in range(draw.randint(1, 3)):
            where = draw.random()
            if where < 0.05:
                build = _RELU + f"        {self._filled(draw.choice(_LAYERS))},\n"
            elif where < 0.1:
                optimizer = self._indented(self._filled(draw.choice(_OPTIMIZERS)))
            elif where < 0.3:
                top += self._filled(draw.choice(_AT_TOP)) + "\n\n"
            elif where < 0.8:
                step += self._indented(self._statement())
            else:
                evaluation += self._indented(self._statement()).replace("loss", "outputs").replace("optimizer", "model")
        return edited(
            BASE,
            (_TOP, top + _TOP),
            (_STEP, _STEP + step),
            (_EVALUATE, _EVALUATE + evaluation),
            (_RELU, build),
            (_SGD, optimizer),
        )

    def _statement(self) -> str:
        if self._random.random() < self._wildness / 2:
            return ast.unparse(ast.fix_missing_locations(self._node("stmt", 3)))
        return self._filled(self._random.choice(_IN_STEP))

    def _indented(self, text: str) -> str:
        return "".join(f"    {line}\n" for line in text.split("\n"))

    def _filled(self, template: str) -> str:
        """Return a template with its holes filled; the letter names the kind of the hole."""
        return re.sub(
            r"\{([tnevmiw])\}|\{\{|\}\}", lambda found: self._hole(found[1]) if found[1] else found[0][0], template
        )

    def _hole(self, kind: str) -> str:
        draw = self._random
        match kind:
            case "v":
                return draw.choice(_STORES if draw.random() < self._wildness else _TARGETS)
            case "m":
                return draw.choice(_NAMES) if draw.random() < 0.5 else draw.choice(_METHODS)
            case "i":
                return draw.choice(_MODULES)
            case "w":
                return self._filled(draw.choice(_ARGUMENTS)) if draw.random() < 0.5 else ""
        return self._expression(kind)

    def _expression(self, kind: str) -> str:
        draw = self._random
        if draw.random() < self._wildness:
            return draw.choice(_WIRES) if draw.random() < 0.5 else ast.unparse(self._node("expr", 3))
        pools = {"t": _TENSORS, "n": _NUMBERS}
        return draw.choice(pools.get(kind) or draw.choice((_TENSORS, _NUMBERS, _OTHERS)))

    # --- Python's whole grammar ---

    def _node(self, kind: str, depth: int) -> ast.AST:
        """Return a random node of a class of the abstract grammar."""
        if kind == "expr" and (depth <= 0 or self._random.random() < 0.3):
            return ast.parse(f"({self._expression('e')})", mode="eval").body
        names = [name for name, (base, _) in self._fields.items() if base == kind] or [kind]
        name = self._random.choice(names)
        node: ast.AST = getattr(ast, name)()
        for field, (part, count) in self._fields[name][1].items():
            setattr(node, field, self._field(part, count, depth - 1))
        return node

    def _field(self, part: str, count: str, depth: int) -> object:
        draw = self._random
        if count == "?" and draw.random() < 0.5:
            return None
        if count == "*":
            least = 1 if part in ("stmt", "withitem", "comprehension", "alias", "match_case") else 0
            return [self._field(part, "", depth) for _ in range(draw.randint(least, 2))]
        match part:
            case "identifier" | "string":
                return draw.choice(_NAMES)
            case "int":
                return draw.choice((0, 1, -1))
            case "constant":
                return draw.choice((None, True, 1, 0.5, "a", b"b", ..., 2j, 10**13, "x" * 101))
            case "stmt" if depth <= 0:
                return ast.Pass()
        return self._node(part, depth)


_METHODS = sorted(
    {"sum", "item", "modules", "format", "values"}.union(re.findall(r"\w+", " ".join((*_TENSORS, *_OTHERS))))
)


def _node_fields() -> dict[str, tuple[str, dict[str, tuple[str, str]]]]:
    """Return each class of nodes with its base and the type and number of its fields, which its docstring names."""
    found = {}
    for name in dir(ast):
        node = getattr(ast, name)
        if not (isinstance(node, type) and issubclass(node, ast.AST) and node.__doc__):
            continue
        described = re.match(rf"{name}(\((.*)\))?$", node.__doc__, re.DOTALL)
        if described and not node.__subclasses__():
            parts = re.findall(r"(\w+)([*?]?) (\w+)", described[2] or "")
            base = name if node.__base__ in (ast.AST, None) else node.__bases__[0].__name__
            found[name] = (base, {field: (kind, count) for kind, count, field in parts})
    return found


def inserted(source: str) -> str:
    """Return the lines of a program that the experiment does not have."""
    lines = difflib.unified_diff(BASE.split("\n"), source.split("\n"), n=0, lineterm="")
    return "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++"))


def forbidden(source: str) -> list[str]:
    """Return what no inserted code may hold wherever it stands, found without any grammar."""
    base = {ast.dump(node) for node in ast.walk(ast.parse(BASE))}
    new = [node for node in ast.walk(ast.parse(source)) if ast.dump(node) not in base]
    found = [f".{node.attr}" for node in new if isinstance(node, ast.Attribute) and node.attr.startswith("__")]
    found = [name for name in found if name != ".__init__"]
    named = {node.id for node in new if isinstance(node, ast.Name)} & (set(dir(builtins)) - _ALLOWED)
    managers = [node for node in ast.parse(source).body if "contextmanager" in map(ast.unparse, _decorators(node))]
    yields = {ast.dump(node) for manager in managers for node in ast.walk(manager) if isinstance(node, ast.Yield)}
    wild = [type(node).__name__ for node in new if isinstance(node, _NEVER) and ast.dump(node) not in yields]
    return [*found, *sorted(named), *wild]


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, ast.FunctionDef) else []


_ALLOWED = words(
    """
    abs all any bool dict divmod enumerate filter float frozenset hasattr id int isinstance iter len list map max min
    next object pow print range repr reversed round set slice sorted str sum super tuple zip __name__
    """
) | {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)}
_NEVER = (
    ast.Global, ast.Nonlocal, ast.While, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef,
    ast.AsyncFor, ast.AsyncWith, ast.Match, ast.TryStar,
)  # fmt: skip
