"""Both sides of the plain-code checks: code that reaches out or keeps count, and code that students write."""

import pytest
from fix_styles import styled_fixes
from runs import edited

from grader.score.known_edits import known_fixes
from grader.syntax.allowed_names import words
from grader.syntax.plain_code import MOST_CHARACTERS, MOST_NUMBERS, suspicions
from harness.recipe import experiment_source, load_recipe, recipe_ids

MLP = experiment_source("digits_mlp")
IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
# Members of modules that an experiment may import, but which are not listed.
NAMES = words(
    """
    contextlib.sys.modules enum.sys.modules enum.bltns.exec copy.copyreg.pickle numpy.random.seed
    numpy.lib.format.open_memmap numpy.core.sys numpy.testing numpy.linalg.linalg numpy.lib.npyio.DataSource
    numpy.setbufsize numpy.set_string_function torch.utils.hooks.RemovableHandle
    torch.utils.cpp_extension.load_inline torch.utils.collect_env.main torch.utils.checkpoint.checkpoint
    torch.utils.benchmark torch.optim.optimizer.register_optimizer_step_pre_hook
    torch.nn.modules.module._global_forward_hooks torch.autograd.graph.saved_tensors_hooks torch.autograd.profiler
    torch.autograd.Variable._execution_engine.queue_callback torch.cuda.random.seed torch.cuda.memory
    torch.func.functional_call torch.ScriptModule torch.PyTorchFileReader torch.PyTorchFileWriter torch.parse_ir
    torch.UntypedStorage.from_file torch.FloatStorage.from_file torch.to_dlpack torch.set_num_threads torch.fork
    torch.init_num_threads torch.set_autocast_enabled torch.ThroughputBenchmark torch.DisableTorchFunction
    torch.Generator torch.optim.sgd.sgd torch.optim.Optimizer.profile_hook_step torch.optim.lr_scheduler.warnings
    torch.optim.swa_utils.itertools torch.nn.utils.stateless torch.nn.common_types torch.nn.parallel
    nn.init.warnings torch.special.torch torch.amp.autocast_mode.torch torch.futures torch.cond torch.while_loop
    torch.vmap torch.typename torch.get_file_path torch.sparse
    """
)
# Each reaches, or could reach, what records, trains and examines an experiment, or counts its calls.
REACHING = [
    'g = getattr\ng(torch, "sys")', "def f(m):\n    return m.sys\nf(torch)", "x = [torch][0].sys.modules",
    "t, u = torch, 1\nt.sys.exit()", 'getattr(torch, "sys").modules', 'getattr(torch, "load")("x")',
    'import operator\noperator.attrgetter("__class__.__mro__")(1)',
    'import operator\noperator.attrgetter("sys.modules")(torch)',
    'import operator\noperator.setitem({}, "a", 1)',
    'import functools\nfunctools.reduce(getattr, ["sys","modules"], torch)',
    'list(map(getattr, [torch], ["sys"]))', 'import dataclasses\ndataclasses.make_dataclass("A", [])',
    "import typing\ntyping.get_type_hints(1)",
    'import typing\ntyping.ForwardRef("x")._evaluate({}, {}, set())',
    'import numpy as np\nnp.fromregex("/etc/passwd", "(.)", [("a","S1")])',
    "import numpy as np\nnp.zeros(3).ctypes.data_as", 'import numpy as np\nnp.zeros(2).tofile("x")',
    "from torch.utils.data import DataLoader", "import torch.utils.data\ntorch.utils.data.dataloader.os",
    "torch.optim.Optimizer.step = None",
    "from torch.nn.modules import module\nmodule.register_module_forward_hook(print)",
    "class A(torch.autograd.Function):\n    pass", 'torch.CompilationUnit("def f(): pass")',
    "torch.import_ir_module", "def prepare_batch(a, b, rng):\n    rng.manual_seed(0)\n    return a, b",
    "def prepare_batch(a, b, rng):\n    rng.set_state(x)\n    return a, b",
    "calls = []\ndef f():\n    calls.append(1)\n    return len(calls) > 100",
    "n = 0\ndef f():\n    global n\n    n += 1", "def f():\n    f.calls = 1",
    "def f(a, state=[]):\n    state.append(1)",
    "def train_step(model, optimizer, a, b):\n    model.calls = 1",
    "import functools\n@functools.lru_cache\ndef load_data(d):\n    return d",
    "def train_step(model, optimizer, a, b):\n    model.named_buffers = print",
    "def build_optimizer(model):\n    o = torch.optim.SGD(model.parameters(), lr=1)\n    o.step = print\n    return o",
    "def f(model):\n    model._forward_hooks.clear()",
    "class N(nn.Module):\n    def forward(self, x):\n        self._forward_hooks.clear()\n        return x",
    "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._forward_pre_hooks = {}",
    "class N(nn.Module):\n    def __call__(self, x):\n        return x",
    "class N(nn.Module):\n    def eval(self):\n        return self",
    "class N(nn.Module):\n    def train(self, mode=True):\n        return self",
    "class N(nn.Module):\n    def named_parameters(self, *a, **k):\n        return []",
    "class N(nn.Module):\n    def modules(self):\n        return []",
    "class N(nn.Module):\n    def state_dict(self, *a, **k):\n        return {}",
    "class N(nn.Module):\n    def _call_impl(self, *a):\n        return 1",
    "class N(nn.Module):\n    __call__ = print",
    "class N(nn.Module):\n    def __getattr__(self, n):\n        return 1",
    "class N(nn.Module):\n    eval = None", '"{0.__class__}".format(1)', 'x = "a.__class__.b"',
    "match x:\n    case object(__class__=c):\n        pass",
    "match torch:\n    case object(sys=s):\n        s.modules",
    "try:\n    pass\nexcept BaseException:\n    pass", "try:\n    pass\nexcept:\n    pass",
    "def f(loss):\n    loss.grad_fn.register_prehook(print)",
    "def f(loss):\n    return loss.grad_fn.next_functions",
    "def f(p):\n    p.register_post_accumulate_grad_hook(print)", "def f(m):\n    m.compile()",
    "(t := torch).sys", "for t in (torch,):\n    t.sys", "with torch as t:\n    t.sys",
    "f = lambda t=torch: t.sys", "import torch as len\nlen.sys", "from torch import sys",
    "from torch import *", "from enum import bltns", "import harness.schedules\nharness.trainer",
    "from harness import recorder", "from harness.schedules import math as m\nm.sys",
    "from harness.schedules import dataclass", "__loader__.load_module", "dir(torch)", "id(1)",
    "object.__subclasses__()", "x = 9999999999999999999999999999999", "import time", "import random",
    "import os", "import datetime", "class T(torch.Tensor):\n    pass", "class I(int):\n    pass",
    "class O(torch.optim.SGD):\n    def step(self, c=None):\n        pass", 'type("A", (), {})',
    't = type\nt("A", (), {})', "(i for i in x).gi_frame", "e.tb_frame", "e.with_traceback(None)",
    "globals()", '\uff45\uff58\uff45\uff43("1")', '__builtins__["exec"]',
    "def f(o):\n    o.param_groups = []",
    "c = itertools.count()\nimport itertools\ndef f():\n    return next(c)", "del torch.nn", "torch.x += 1",
    "nn.Module.forward = None", "F.importlib",
]  # fmt: skip
# Plain, all of it.
STUDENTS = """\
class Net(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.width = width
        self._hidden = nn.Linear(784, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("mean", torch.zeros(1))
    def forward(self, x):
        x = F.relu(self._hidden(x.flatten(1)))
        for layer in self.layers:
            x = layer(x)
        return self.scale * x if self.training else x
import torch.optim as optim
from torch.optim import SGD, lr_scheduler
def build_optimizer(model):
    o = optim.SGD(model.parameters(), lr=0.1)
    s = optim.lr_scheduler.StepLR(o, 3)
    t = lr_scheduler.LambdaLR(o, lambda step: 0.9 ** step)
    return o
def f(optimizer):
    for group in optimizer.param_groups:
        group["lr"] *= 0.1
    optimizer.param_groups[0]["lr"] = 0.1
def f(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.data.clamp_(-1, 1)
            p.grad = p.grad / 64
            p.data.add_(p.grad, alpha=-0.1)
def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight)
        m.bias.data.fill_(0.01)
def build_model():
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    model.apply(init_weights)
    model[1].weight = nn.Parameter(torch.zeros(10, 784))
    return model
if __name__ == "__main__":
    print("this is no program")
from typing import Any, Optional
from dataclasses import dataclass, field
@dataclass
class Options:
    lr: float = 0.1
    names: list[str] = field(default_factory=list)
options = Options()
options.lr = 0.2
def f(x: torch.Tensor, o: Optional[Options] = None) -> tuple[torch.Tensor, float]:
    return x, 1.0
import copy
@torch.no_grad()
def evaluate(model, inputs, labels):
    model = copy.deepcopy(model).eval()
    losses = []
    for i in range(0, len(inputs), 64):
        losses.append(F.cross_entropy(model(inputs[i:i+64]), labels[i:i+64]).item())
    return {"val_loss": sum(losses) / len(losses)}
scaler = torch.cuda.amp.GradScaler(enabled=False)
def train_step(model, optimizer, inputs, labels):
    with torch.autocast(device_type=inputs.device.type, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(inputs), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
    return loss
def f(inputs, labels, rng):
    order = torch.randperm(len(labels), generator=rng)
    flipped = torch.where(torch.rand(len(inputs), generator=rng)[:, None, None, None] < 0.5, inputs.flip(3), inputs)
    return flipped[order], labels[order]
from contextlib import nullcontext
from functools import partial
from collections import defaultdict
import math
from itertools import chain
quarter = math.pi / 4
f = partial(F.cross_entropy, label_smoothing=0.1)
from harness.schedules import warmup_cosine
torch.autograd.set_detect_anomaly(True)
loss_function = F.cross_entropy
ce = nn.functional.cross_entropy
W = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
def f(x):
    x = x.clone()
    x[0] = 1
    x.mul_(2)
    return F.one_hot(x.argmax(1), 10).float()
"""

PLAIN = [
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "print(loss.item(), len(inputs))",
    "import math", "import numpy as np", "from torch.optim.lr_scheduler import CosineAnnealingLR",
    "from torch import Tensor, nn", "from collections.abc import Callable",
    'scale = torch.amp.GradScaler("cpu")', 'scale = torch.GradScaler("cpu")',
    "for group in optimizer.param_groups:\n        group['lr'] = 0.1",
    "for p in model.parameters():\n        p.grad = None",
    "for p in model.parameters():\n        p.requires_grad = True",
    "with torch.no_grad():\n        mean = inputs.mean()", "assert torch.isfinite(loss), 'not finite'",
    "x = getattr(model, 'training')",
    "grads = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)",
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self._width = 3",
    "class Net(nn.Module):\n    def __init__(self):\n        nn.Module.__init__(self)",
    "from dataclasses import dataclass\n@dataclass\nclass Options:\n    lr: float = 0.1",
    "def twice(function):\n    return function\n@twice\ndef other():\n    return 1", "x = [1, 2, 3] * 100",
]  # fmt: skip


ODD = [
    ("import sys", "import"), ("import os.path", "import"), ("import gc, math", "import"),
    ("import torch.utils.cpp_extension", "import"), ("from torch import save", "import"),
    ("from torch import os", "import"), ("from torch import *", "import"),
    ("from harness.run.recorder import Recorder", "import"), ("import harness.trainer", "import"),
    ("from . import x", "import"), ("import random", "import"), ("import time", "import"),
    ("import threading", "import"), ("import pickle", "import"), ("X = torch.os.environ", "reach"),
    ("X = torch.sys.modules", "reach"), ("X = nn.functional.importlib", "reach"),
    ("X = torch.load('x')", "reach"), ("X = torch.hub", "reach"), ("torch.manual_seed(0)", "reach"),
    ("torch.use_deterministic_algorithms(False)", "reach"),
    ("torch.set_default_dtype(torch.float64)", "reach"), ("X = torch.Generator()", "reach"),
    ("X = torch._C", "reach"), ("import numpy as np\nX = np.random.rand(3)", "reach"),
    ("import numpy as np\nnp.load('x')", "reach"), ("import dataclasses\nX = dataclasses.sys", "reach"),
    ("g = F\nX = g.importlib", "reach"), ("F.cross_entropy = None", "patch"),
    ("torch.nn.functional.cross_entropy = None", "patch"), ("torch.optim.SGD.step = None", "patch"),
    ("F.__dict__['cross_entropy'] = None", "introspection"), ("optimizer.step = lambda: None", "patch"),
    ("model.forward = None", "patch"), ("del torch.nn", "patch"), ("exec('x = 1')", "builtin"),
    ("e = eval", "builtin"), ("open('x')", "builtin"), ("__import__('sys')", "builtin"),
    ("getattr(model, 'a' + 'b')", "builtin"), ("getattr(model, '__class__')", "builtin"),
    ("setattr(model, 'a', 1)", "builtin"), ("x = __builtins__", "builtin"),
    ("x = ().__class__.__bases__", "introspection"), ("x = train_step.__globals__", "introspection"),
    ("x = '__globals__'", "introspection"), ("x = (i for i in ()).gi_frame", "introspection"),
    ("x = optimizer._optimizer_step_pre_hooks", "private"), ("model.register_forward_hook(print)", "hook"),
    ("inputs.register_hook(print)", "hook"), ("optimizer.register_step_post_hook(print)", "hook"),
    ("inputs.numpy().tofile('x')", "memory"), ("class Evil(float):\n    pass", "class"),
    ("class Evil(torch.optim.SGD):\n    pass", "class"), ("class Evil(metaclass=print):\n    pass", "class"),
    ("class Evil:\n    def __eq__(self, other):\n        return True", "class"),
    ("x = type('Evil', (float,), {})", "class"),
    ("import functools\n@functools.singledispatch\ndef other():\n    return 1", "decorator"),
    (f"X = {list(range(300))}", "data"), (f"X = {'a' * 2000!r}", "data"), (f"X = {10**40}", "data"),
    (f"X = 0x{'f' * 6000}", "unparsable"),
]  # fmt: skip


COUNTERS = [
    "TICKS = iter(range(9))", "TICKS, OTHER = enumerate([1, 2]), 1",
    "from itertools import count\nTICKS = count()", "TICKS = (n for n in range(9))",
    "def ticks():\n    yield 1\nTICKS = ticks()", "def make():\n    return [zip([1])]\nTICKS = make()",
    "class Counter:\n    def __init__(self):\n        self.ticks = map(abs, [1])\nTICKS = Counter()",
    "def helper(ticks=iter(range(9))):\n    for tick in ticks:\n        return tick",
    "from torch import nn\nNORM = nn.BatchNorm1d(1)",
    "X = torch.zeros(1)\ndef helper():\n    nn.init.ones_(X)",
    "X = torch.zeros(1)\ndef helper():\n    torch.add(X, 1, out=X)",
    "X = torch.zeros(1)\ndef helper():\n    F.relu(X, inplace=True)",
    "X = set()\ndef helper():\n    X.symmetric_difference_update({1})",
    "class Net(nn.Module):\n    def forward(self, x):\n        self.calls += 1\n        return x",
    "class Net(nn.Module):\n    def forward(self, x):\n        self.calls.add_(1)\n        return x",
]  # fmt: skip


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


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_unlisted_name_is_suspected(name: str) -> None:
    assert suspicions(f"import {name.split('.')[0]}\n{name}")


@pytest.mark.parametrize("lines", REACHING)
def test_code_that_reaches_out_is_suspected(lines: str) -> None:
    assert suspicions(IMPORTS + lines)


def test_student_code_is_plain() -> None:
    assert suspicions(IMPORTS + STUDENTS) == ()


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_is_plain(line: str) -> None:
    assert suspicions(with_line(line)) == ()


@pytest.mark.parametrize(("line", "code"), ODD)
def test_what_could_reach_the_grader_is_named(line: str, code: str) -> None:
    found = suspicions(with_line(line))
    assert code in {item.code for item in found}
    for item in found:
        assert item.code == "unparsable" or item.message.startswith(f"line {item.line} ")
        assert len(item.message) < 200
        assert not item.message.endswith(".")


@pytest.mark.parametrize("source", [
    nested(45, 45, "x = 1"), nested(20, 70, "x.add(1)"), nested(90, 0, "x = 1"), nested(0, 90, "x = [x]"),
    "x = " + "lambda: [" * 45 + "1, " * 3000 + "]" * 45, "x = " + "[" * 90 + "1, " * 3000 + "]" * 90,
    "(" * 10_000 + ")" * 10_000, "x = 1\n" * 10_000, "g = torch\n" * 5000, "a.b" + ".c" * 20_000, "\0",
    "import x" * 3,
])  # fmt: skip
def test_a_source_made_to_hurt_gets_an_answer(source: str) -> None:
    assert all(item.message for item in suspicions(source))


@pytest.mark.parametrize(("classes", "functions"), [(1, 4), (3, 2), (0, 5), (5, 0)])
def test_definitions_inside_definitions_are_looked_at_as_deep_as_anybody_writes(
    classes: int, functions: int
) -> None:
    assert "nesting" not in {item.code for item in suspicions(nested(classes, functions, "x = 1"))}
    assert "builtin" in {item.code for item in suspicions(nested(classes, functions, "x = exec"))}
    found = suspicions(nested(classes, functions + 1, "x = 1"))
    assert [item.code for item in found] == ["nesting"]
    assert "line 6 defines" in found[0].message


@pytest.mark.parametrize("line", COUNTERS)
def test_what_counts_its_calls_is_named(line: str) -> None:
    source = edited(MLP, ("EPOCHS = 5\n", f"{line}\nEPOCHS = 5\n"))
    assert {item.code for item in suspicions(source)} == {"state"}


@pytest.mark.parametrize("line", [
    "optimizer.param_groups[0]['calls'] = 1", "optimizer.defaults['lr'] = 1",
    "for group in optimizer.param_groups:\n        group['calls'] = 1",
    "model.register_buffer('calls', loss)",
])  # fmt: skip
def test_a_note_on_what_the_harness_hands_over_is_named(line: str) -> None:
    assert {item.code for item in suspicions(with_line(line))} == {"state"}


@pytest.mark.parametrize("line", [
    "TABLE = [n for n in enumerate([1, 2])]", "TABLE = dict(zip([1], [2]))",
    "from torch import nn\nLOSS = nn.CrossEntropyLoss()",
    "class Net(nn.Module):\n    def __init__(self):\n        self.norm = nn.BatchNorm1d(3)",
    "def helper(model):\n    return sum(p.numel() for p in model.parameters())",
])  # fmt: skip
def test_what_is_used_up_where_it_is_made_counts_nothing(line: str) -> None:
    assert suspicions(edited(MLP, ("EPOCHS = 5\n", f"{line}\nEPOCHS = 5\n"))) == ()


DATA = [
    f"x = {[0.5] * (MOST_NUMBERS + 1)}", f"x = {[-0.5] * (MOST_NUMBERS + 1)}",
    "\n".join(f"x{i} = {[0.5] * (MOST_NUMBERS - 1)}" for i in range(3)),
    f"x = {'a' * (MOST_CHARACTERS + 1)!r}", f"x = {b'a' * (MOST_CHARACTERS + 1)!r}",
    "\n".join(f"x{i} = {'a' * (MOST_CHARACTERS - 1)!r}" for i in range(5)), f"x = {10**31}",
    f"x = list(dict({'a' * 61}=None))[0]", f"x = list(dict({', '.join(f'k{n}=None' for n in range(41))}))",
    "; ".join(f"{'n' * 50}{n} = None" for n in range(80)),
]  # fmt: skip


@pytest.mark.parametrize("lines", DATA)
def test_data_in_a_file_is_suspected(lines: str) -> None:
    assert {item.code for item in suspicions(lines)} == {"data"}


def test_a_long_docstring_is_no_data() -> None:
    assert suspicions(f'"""{"word " * 1000}"""\n') == ()
