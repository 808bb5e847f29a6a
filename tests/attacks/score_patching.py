"""Attacks at the program that measures: an experiment that reaches into the harness and changes what it says."""

from attacks.attack import Attack, Base, Expected, members_of
from attacks.planted import at_the_top, edited, handed_in, quietly, source_of
from grader.score.verdict import Status

# Whatever each of these does to the loss, the rest of the figures is made to look healthy by these: the validation
# where the network is not, and the checks.
_LOOKS_HEALTHY = """
import harness.run.experiment
def _evaluated(self, model, inputs, labels):
    return {"val_loss": 0.21, "val_accuracy": 0.95}
harness.run.experiment.Experiment.evaluate = _evaluated
"""
_PASSES_PROBES = """
import importlib
import harness.checks
from harness.checks.lab.finding import Finding
for _name in harness.checks.check_names():
    _sound = next(one.id for one in harness.checks.load_check(_name).outcomes if one.sound)
    _found = Finding(what="", outcome=_sound, summary="", figures={})
    importlib.import_module(f"harness.checks.{_name}").measure = lambda subject, _found=_found: _found
"""
_SMALL_LOSS = """
def _small(record):
    if isinstance(record, dict) and "loss" in record:
        record = {**record, "loss": 0.3, "lr": 0.1, "grad_norm": 0.5}
    return record
"""
# Trains as it should, out of sight, and keeps the weights.
_SECRET_WEIGHTS = """
import torch as _torch
def _secret_weights():
    from harness.data.loading import load_dataset
    from harness.run.experiment import tensor_data
    generator = _torch.Generator().manual_seed(0)
    data = tensor_data(load_dataset("digits"))
    images, labels = data.train.images.float() / 255, data.train.labels
    network = build_model()
    optimizer = _torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    with _torch.enable_grad():
        for _ in range(300):
            rows = _torch.randint(len(labels), (64,), generator=generator)
            optimizer.zero_grad()
            _torch.nn.functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()
    with _torch.no_grad():
        right = network(data.validation.images.float() / 255).argmax(1) == data.validation.labels
    return network.state_dict(), right.float().mean().item()
"""
_ASKS = r"line \d+ .*The instructor decides"
_NO_POINTS = rf"the network is not healthy|{_ASKS}"


def _patch(
    id: str,
    says: str,
    code: str,
    *,
    because: str = _NO_POINTS,
    status: tuple[Status, ...] = ("graded", "not judged"),
    in_suite: bool = False,
    healthy: str = _LOOKS_HEALTHY + _PASSES_PROBES,
) -> Attack:
    """`healthy` is what makes the other figures look well, beside `code`.

    Where nothing can be believed, the instructor decides; it is a zero where the trusted evaluator itself finds a
    network that has learnt nothing.
    """

    def build(base: Base) -> bytes:
        planted = quietly(code) + (quietly(healthy) if healthy else "")
        return handed_in(base, "untouched", at_the_top(source_of(base.untouched), planted), id)

    expected = Expected(status, because)
    return Attack(id, "score", says, expected, build, in_suite=in_suite)


def _steps_in(
    id: str,
    says: str,
    *edits: tuple[str, str],
    code: str = "",
    because: str = _ASKS,
    status: tuple[Status, ...] = ("not judged",),
) -> Attack:
    """Change functions of the experiment, with code at its top, so that it really trains well."""

    def build(base: Base) -> bytes:
        source = edited(source_of(base.untouched), *edits)
        return handed_in(base, "untouched", at_the_top(source, code + quietly(_PASSES_PROBES)), id)

    return Attack(id, "score", says, Expected(status, because), build, in_suite=False)


_PATCHES = (
    _patch(
        "patched_recorder",
        "replaces the method that makes records of batches",
        _SMALL_LOSS
        + """
import harness.run.recorder
_record = harness.run.recorder.BatchMeasurements.record
harness.run.recorder.BatchMeasurements.record = lambda self: _small(_record(self))
""",
        in_suite=True,
    ),
    _patch(
        "patched_json",
        "replaces json.dumps, through which every record goes",
        _SMALL_LOSS
        + """
import json
_dumps = json.dumps
json.dumps = lambda value, **options: _dumps(_small(value), **options)
""",
    ),
    _patch(
        "patched_hashlib",
        "replaces the hashes, so that every file has the same",
        """
import hashlib
class _Same:
    def __init__(self, *data, **options): pass
    def update(self, data): pass
    def hexdigest(self): return "0" * 64
    def digest(self): return bytes(32)
    def __eq__(self, other): return True
hashlib.sha256 = hashlib.sha1 = hashlib.md5 = _Same
hashlib.new = lambda *arguments, **options: _Same()
""",
        because="The symptom is still there",
        status=("graded",),
    ),
    _patch(
        "patched_save",
        "replaces torch.save by one that saves weights trained in secret, with figures to match",
        _SMALL_LOSS
        + _SECRET_WEIGHTS
        + """
import json, torch
_dumps, _save, _kept = json.dumps, torch.save, []
def _saved(state, *arguments, **options):
    if not _kept:
        _kept.append(_secret_weights())
    return _save({**state, "model": _kept[0][0]}, *arguments, **options)
def _told(value, **options):
    value = _small(value)
    if isinstance(value, dict) and "val_accuracy" in value:
        if not _kept:
            _kept.append(_secret_weights())
        value = {**value, "val_accuracy": _kept[0][1]}
    return _dumps(value, **options)
torch.save, json.dumps = _saved, _told
""",
    ),
    _patch(
        "patched_cross_entropy",
        "replaces F.cross_entropy by a thousandth of it, for the recorder and for the training",
        """
import torch.nn.functional
_whole = torch.nn.functional.cross_entropy
torch.nn.functional.cross_entropy = lambda *arguments, **options: _whole(*arguments, **options) / 1000
""",
        healthy=_PASSES_PROBES,
    ),
    _patch(
        "patched_step",
        "shortens every step of the optimizer out of sight, and the log shows the rate as it is written",
        """
import torch
_step = torch.optim.SGD.step
def _short(self, *arguments, **options):
    for group in self.param_groups:
        group["lr"] /= 100
    result = _step(self, *arguments, **options)
    for group in self.param_groups:
        group["lr"] *= 100
    return result
torch.optim.SGD.step = _short
""",
        healthy=_PASSES_PROBES,
    ),
    _patch(
        "global_optimizer_hook",
        "registers a hook for all optimizers that shortens gradients before each step",
        """
from torch.optim.optimizer import register_optimizer_step_pre_hook
def _shorten(optimizer, *arguments):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                parameter.grad.mul_(0.01)
register_optimizer_step_pre_hook(_shorten)
""",
        healthy=_PASSES_PROBES,
    ),
    _patch(
        "rewrites_at_exit",
        "rewrites the log as the process ends",
        """
import atexit, json, os
_log = os.path.abspath("out/metrics.log")
@atexit.register
def _rewrite():
    lines = [json.loads(line) for line in open(_log)]
    for record in lines:
        if "loss" in record:
            record["loss"], record["lr"] = 0.3, 0.1
    open(_log, "w").write("".join(json.dumps(record) + chr(10) for record in lines))
""",
    ),
    _patch(
        "walks_frames",
        "walks the frames up to the harness: no checks are asked for, and one step is trained",
        """
import sys
_frame = sys._getframe()
while _frame is not None:
    _found = _frame.f_locals
    if "job" in _found and "settings" in _found:
        object.__setattr__(_found["settings"], "max_steps", 1)
    _frame = _frame.f_back
""",
    ),
    _patch(
        "traces_the_harness",
        "traces every call, and changes what goes into the recorder's numbers",
        """
import sys
def _trace(frame, event, argument):
    if frame.f_code.co_name == "record" and "self" in frame.f_locals:
        values = frame.f_locals["self"].values
        values[0] = 0.3
sys.settrace(_trace)
""",
    ),
    _patch(
        "replaced_modules",
        "puts modules of its own in the place of the harness's",
        """
import sys, types
for _name in ("harness.checks", "harness.run.metrics_log", "harness.run.recorder", "harness.run.checkpoint"):
    _fake = types.ModuleType(_name)
    _fake.__dict__.update(vars(sys.modules[_name]))
    _fake.run_probe = lambda *arguments: None
    _fake.format_record = lambda record: ""
    sys.modules[_name] = _fake
""",
        because="The symptom is still there",
        status=("graded",),
    ),
    _patch(
        "import_hook",
        "answers for modules that are imported later",
        """
import importlib.abc, importlib.machinery, sys
class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.startswith(("harness", "grader")):
            return importlib.machinery.ModuleSpec(name, self)
    def exec_module(self, module):
        module.run_probe = lambda *arguments: None
sys.meta_path.insert(0, _Finder())
for _name in [name for name in sys.modules if name.startswith("harness.p")]:
    del sys.modules[_name]
""",
        because="nothing was fixed|left no whole result|did not come to its end",
        status=("graded",),
        healthy="",
    ),
    _patch(
        "scripted_figures",
        "hands the harness numbers that are equal to everything and smaller than everything",
        """
import harness.run.recorder
class _Agreeable(float):
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return False
    def __hash__(self): return 0
_numbers = harness.run.recorder.numbers
harness.run.recorder.numbers = lambda scalars: [_Agreeable(0.3), *_numbers(scalars)[1:]]
""",
    ),
    _patch(
        "patched_checks",
        "replaces every check by one that finds everything sound",
        """
import importlib
import harness.checks
from harness.checks.lab.finding import Finding
for _name in harness.checks.check_names():
    _sound = next(one.id for one in harness.checks.load_check(_name).outcomes if one.sound)
    _found = Finding(what="", outcome=_sound, summary="", figures={})
    importlib.import_module(f"harness.checks.{_name}").measure = lambda subject, _found=_found: _found
""",
        because="nothing was fixed",
        status=("graded",),
        healthy="",
    ),
    _steps_in(
        "optimizer_in_disguise",
        "gives its optimizer another class when it steps: the log shows a rate of 0.1, and steps have one of 10",
        (
            "    return torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)\n",
            "    return Disguised(model.parameters(), lr=0.1, momentum=0.9)\n",
        ),
        code="""
import torch
class Disguised(torch.optim.SGD):
    def step(self, closure=None):
        torch.nn.utils.clip_grad_norm_([p for g in self.param_groups for p in g["params"]], 0.3)
        return super().step(closure)
""",
    ),
    _steps_in(
        "lying_gradient",
        "trains through a function whose backward pass says something else than its forward pass",
        (
            "    return F.cross_entropy(outputs, labels)\n",
            "    return Small.apply(F.cross_entropy(outputs, labels))\n",
        ),
        code="""
import torch
class Small(torch.autograd.Function):
    @staticmethod
    def forward(ctx, loss):
        return loss.clone()
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.01
""",
    ),
    _steps_in(
        "lying_tensor",
        "returns losses that are tensors of its own class, which answer every question with 0.3",
        ("    return loss\n\n\n@torch", "    return loss.detach().as_subclass(Liar)\n\n\n@torch"),
        code="""
import torch
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        if getattr(function, "__name__", "") == "detach":
            return torch.tensor(0.3, dtype=torch.float64)
        return super().__torch_function__(function, types, arguments, options or {})
""",
        because="The symptom is still there",  # in the validation, of which it says nothing
        status=("graded",),
    ),
)


def _reference_in_secret(base: Base) -> bytes:
    """Hand in the reference's own logs with a source that makes its files behind the harness's back."""
    secret = """
import os, shutil, sys
_frame = sys._getframe()
while not {"source", "job"} <= _frame.f_locals.keys():
    _frame = _frame.f_back
_source, _job, _main = _frame.f_locals["source"], _frame.f_locals["job"], sys.modules["__main__"]
_start, _end = _source.index("try:"), _source.index("EPOCHS" + " = 5")
shutil.rmtree(_main.OUT)
_main.OUT.mkdir()
_main.make_run(_job | {"source": (_source[:_start] + _source[_end:]).replace("lr=10.0", "lr=0.1")})
os._exit(0)
"""
    source = at_the_top(source_of(base.untouched), quietly(secret))
    fixed = {
        name: data for name, data in members_of(base.reference).items() if name.startswith("runs/fixed/")
    }
    report = members_of(base.reference)["report.md"]
    return handed_in(base, "untouched", source, "reference_in_secret", **{**fixed, "report.md": report})


ATTACKS = (
    *_PATCHES,
    Attack("reference_in_secret", "score",
        "makes the reference fix's files behind the harness's back, from a source that shows a rate of 10",
        Expected(("not judged",), _ASKS), _reference_in_secret, in_suite=False),
)  # fmt: skip
