"""Both sides of the static look: files that reach out, each in its own way, and files that students write."""

import pytest

from grader.syntax.plain_code import MOST_CHARACTERS, MOST_NUMBERS, suspicions

_IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"

# Each reaches, or could reach, what records, trains and probes an experiment, or keeps count of its calls.
REACHING = [
    'g = getattr\ng(torch, "sys")',
    "def f(m):\n    return m.sys\nf(torch)",
    "x = [torch][0].sys.modules",
    "t, u = torch, 1\nt.sys.exit()",
    'getattr(torch, "sys").modules',
    'getattr(torch, "load")("x")',
    'import operator\noperator.attrgetter("__class__.__mro__")(1)',
    'import operator\noperator.attrgetter("sys.modules")(torch)',
    'import operator\noperator.setitem({}, "a", 1)',
    "import contextlib\ncontextlib.sys.modules",
    'import functools\nfunctools.reduce(getattr, ["sys","modules"], torch)',
    'list(map(getattr, [torch], ["sys"]))',
    'import dataclasses\ndataclasses.make_dataclass("A", [])',
    "import typing\ntyping.get_type_hints(1)",
    'import typing\ntyping.ForwardRef("x")._evaluate({}, {}, set())',
    "import enum\nenum.sys.modules",
    'import enum\nenum.bltns.exec("1")',
    "import copy\ncopy.copyreg.pickle",
    "import numpy as np\nnp.random.seed(0)",
    "import numpy\nnumpy.lib.format.open_memmap",
    "import numpy\nnumpy.core.sys",
    'import numpy as np\nnp.fromregex("/etc/passwd", "(.)", [("a","S1")])',
    "import numpy as np\nnp.testing",
    "import numpy as np\nnp.linalg.linalg",
    "import numpy as np\nnp.zeros(3).ctypes.data_as",
    "import numpy as np\nnp.lib.npyio.DataSource",
    "import numpy as np\nnp.setbufsize(1)",
    "import numpy as np\nnp.set_string_function",
    'import numpy as np\nnp.zeros(2).tofile("x")',
    "from torch.utils.data import DataLoader",
    "import torch.utils.data\ntorch.utils.data.dataloader.os",
    "torch.utils.hooks.RemovableHandle",
    "torch.utils.cpp_extension.load_inline",
    "torch.utils.collect_env.main()",
    "torch.utils.checkpoint.checkpoint",
    "torch.utils.benchmark",
    "torch.optim.optimizer.register_optimizer_step_pre_hook(print)",
    "torch.optim.Optimizer.step = None",
    "from torch.nn.modules import module\nmodule.register_module_forward_hook(print)",
    "torch.nn.modules.module._global_forward_hooks",
    "class A(torch.autograd.Function):\n    pass",
    "torch.autograd.graph.saved_tensors_hooks",
    "torch.autograd.profiler",
    "torch.autograd.Variable._execution_engine.queue_callback(print)",
    "torch.cuda.random.seed()",
    "torch.cuda.memory",
    "torch.func.functional_call",
    "torch.ScriptModule",
    'torch.PyTorchFileReader("x")',
    'torch.PyTorchFileWriter("x")',
    'torch.CompilationUnit("def f(): pass")',
    'torch.parse_ir("x")',
    "torch.import_ir_module",
    'torch.UntypedStorage.from_file("x")',
    'torch.FloatStorage.from_file("x")',
    "torch.to_dlpack",
    "torch.set_num_threads(1)",
    "torch.fork(print)",
    "torch.init_num_threads()",
    "torch.set_autocast_enabled(True)",
    "torch.ThroughputBenchmark",
    "torch.DisableTorchFunction",
    "def prepare_batch(a, b, rng):\n    rng.manual_seed(0)\n    return a, b",
    "def prepare_batch(a, b, rng):\n    rng.set_state(x)\n    return a, b",
    "calls = []\ndef f():\n    calls.append(1)\n    return len(calls) > 100",
    "n = 0\ndef f():\n    global n\n    n += 1",
    "def f():\n    f.calls = 1",
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
    "class N(nn.Module):\n    eval = None",
    '"{0.__class__}".format(1)',
    'x = "a.__class__.b"',
    "match x:\n    case object(__class__=c):\n        pass",
    "match torch:\n    case object(sys=s):\n        s.modules",
    "try:\n    pass\nexcept BaseException:\n    pass",
    "try:\n    pass\nexcept:\n    pass",
    "def f(loss):\n    loss.grad_fn.register_prehook(print)",
    "def f(loss):\n    return loss.grad_fn.next_functions",
    "def f(p):\n    p.register_post_accumulate_grad_hook(print)",
    "def f(m):\n    m.compile()",
    "(t := torch).sys",
    "for t in (torch,):\n    t.sys",
    "with torch as t:\n    t.sys",
    "f = lambda t=torch: t.sys",
    "import torch as len\nlen.sys",
    "from torch import sys",
    "from torch import *",
    "from enum import bltns",
    "import harness.schedules\nharness.trainer",
    "from harness import recorder",
    "from harness.losses import torch as t\nt.sys",
    "from harness.schedules import dataclass",
    "__loader__.load_module",
    "dir(torch)",
    "id(1)",
    "object.__subclasses__()",
    "torch.Generator()",
    "x = 9999999999999999999999999999999",
    "import time",
    "import random",
    "import os",
    "import datetime",
    "class T(torch.Tensor):\n    pass",
    "class I(int):\n    pass",
    "class O(torch.optim.SGD):\n    def step(self, c=None):\n        pass",
    'type("A", (), {})',
    't = type\nt("A", (), {})',
    "(i for i in x).gi_frame",
    "e.tb_frame",
    "e.with_traceback(None)",
    "globals()",
    '\uff45\uff58\uff45\uff43("1")',
    '__builtins__["exec"]',
    "def f(o):\n    o.param_groups = []",
    "c = itertools.count()\nimport itertools\ndef f():\n    return next(c)",
    "del torch.nn",
    "torch.x += 1",
    "torch.optim.sgd.sgd",
    "torch.optim.Optimizer.profile_hook_step",
    "torch.optim.lr_scheduler.warnings",
    "torch.optim.swa_utils.itertools",
    "torch.nn.utils.stateless",
    "torch.nn.common_types",
    "torch.nn.parallel",
    "nn.Module.forward = None",
    "F.importlib",
    "nn.init.warnings",
    "torch.special.torch",
    "torch.amp.autocast_mode.torch",
    "torch.futures",
    "torch.cond",
    "torch.while_loop",
    "torch.vmap",
    "torch.typename",
    'torch.get_file_path("x")',
    "torch.sparse",
]

STUDENTS = [
    """\
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
""",
    """\
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
""",
    """\
import torch.optim as optim
from torch.optim import SGD, lr_scheduler
def build_optimizer(model):
    o = optim.SGD(model.parameters(), lr=0.1)
    s = optim.lr_scheduler.StepLR(o, 3)
    t = lr_scheduler.LambdaLR(o, lambda step: 0.9 ** step)
    return o
""",
    """\
criterion = nn.CrossEntropyLoss()
def compute_loss(outputs, labels):
    return criterion(outputs, labels)
""",
    """\
def f(optimizer):
    for group in optimizer.param_groups:
        group["lr"] *= 0.1
    optimizer.param_groups[0]["lr"] = 0.1
""",
    """\
def f(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.data.clamp_(-1, 1)
            p.grad = p.grad / 64
            p.data.add_(p.grad, alpha=-0.1)
""",
    """\
def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight)
        m.bias.data.fill_(0.01)
def build_model():
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    model.apply(init_weights)
    model[1].weight = nn.Parameter(torch.zeros(10, 784))
    return model
""",
    """\
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
""",
    """\
if __name__ == "__main__":
    print("this is no program")
""",
    """\
import numpy as np
def f(x):
    return np.mean(x.detach().cpu().numpy())
""",
    """\
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
""",
    """\
import copy
@torch.no_grad()
def evaluate(model, inputs, labels):
    model = copy.deepcopy(model).eval()
    losses = []
    for i in range(0, len(inputs), 64):
        losses.append(F.cross_entropy(model(inputs[i:i+64]), labels[i:i+64]).item())
    return {"val_loss": sum(losses) / len(losses)}
""",
    """\
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
""",
    """\
def f(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        raise ValueError("zero") from None
""",
    """\
def f(inputs, labels, rng):
    order = torch.randperm(len(labels), generator=rng)
    flipped = torch.where(torch.rand(len(inputs), generator=rng)[:, None, None, None] < 0.5, inputs.flip(3), inputs)
    return flipped[order], labels[order]
""",
    """\
from contextlib import nullcontext
from functools import partial
from collections import defaultdict
import math
from itertools import chain
x = math.pi
f = partial(F.cross_entropy, label_smoothing=0.1)
""",
    """\
from harness.schedules import warmup_cosine
from harness.losses import stable_cross_entropy
""",
    """\
class Schedule:
    def __init__(self, steps):
        self.steps = steps
    def __call__(self, step):
        return min(1.0, step / self.steps)
""",
    """\
torch.autograd.set_detect_anomaly(True)
loss_function = F.cross_entropy
ce = nn.functional.cross_entropy
""",
    """\
def f(model, input, type_of):
    return model(input), type(model)(), getattr(model, "training")
""",
    """\
W = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
def f(x):
    x = x.clone()
    x[0] = 1
    x.mul_(2)
    return F.one_hot(x.argmax(1), 10).float()
""",
]


@pytest.mark.parametrize("lines", REACHING)
def test_a_file_that_reaches_out_is_suspected(lines: str) -> None:
    assert suspicions(_IMPORTS + lines)


@pytest.mark.parametrize("lines", STUDENTS)
def test_what_students_write_is_plain(lines: str) -> None:
    assert suspicions(_IMPORTS + lines) == ()


@pytest.mark.parametrize(
    "lines",
    [
        f"x = {[0.5] * (MOST_NUMBERS + 1)}",
        f"x = {[-0.5] * (MOST_NUMBERS + 1)}",
        "\n".join(f"x{i} = {[0.5] * (MOST_NUMBERS - 1)}" for i in range(3)),
        f"x = {'a' * (MOST_CHARACTERS + 1)!r}",
        f"x = {b'a' * (MOST_CHARACTERS + 1)!r}",
        "\n".join(f"x{i} = {'a' * (MOST_CHARACTERS - 1)!r}" for i in range(5)),
        f"x = {10**31}",
    ],
)
def test_data_in_a_file_is_suspected_however_it_is_split(lines: str) -> None:
    assert {item.code for item in suspicions(lines)} == {"data"}


def test_a_long_docstring_is_no_data() -> None:
    assert suspicions(f'"""{"word " * 1000}"""\n') == ()
