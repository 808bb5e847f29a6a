"""Attacks on the measuring program: an experiment that reaches into the harness and changes its measurements.

The grammar of plain edits stops all of them in the same way. So there is one attack for each way in which code can
reach the harness, and one for each thing that it can change there.
"""

from attacks.attack import Attack, Base, Expected
from attacks.planted import at_the_top, edited, handed_in, quietly, source_of
from grader.score.verdict import RowStatus

_RECORDER = """
import harness.run.experiment, harness.run.recorder
def _evaluated(self, model, inputs, labels):
    return {"val_loss": 0.21, "val_accuracy": 0.95}
harness.run.experiment.Experiment.evaluate = _evaluated
def _small(record):
    return {**record, "loss": 0.3, "lr": 0.1, "grad_norm": 0.5} if "loss" in record else record
_record = harness.run.recorder.BatchMeasurements.record
harness.run.recorder.BatchMeasurements.record = lambda self: _small(_record(self))
"""
_CHECKS = """
import importlib
import harness.checks
from harness.checks.core.finding import Finding
for _name in harness.checks.check_names():
    _sound = next(one.id for one in harness.checks.load_check(_name).outcomes if one.sound)
    _found = Finding(outcome=_sound, summary="", figures={})
    importlib.import_module(f"harness.checks.{_name}").measure = lambda subject, _found=_found: _found
"""
# Trains correctly in secret, and keeps the weights.
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
_NO_POINTS = rf"symptom is still there|the network is not healthy|{_ASKS}"
_SGD = "    return torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)\n"


def _patch(
    id: str,
    says: str,
    code: str,
    *,
    because: str = _NO_POINTS,
    status: tuple[RowStatus, ...] = ("graded", "not judged"),
    in_suite: bool = False,
) -> Attack:
    """Run code at the import of the broken experiment.

    The instructor decides if no measurement can be trusted. The fix gets 0 points if the trusted evaluator finds that
    the network has learnt nothing.
    """

    def build(base: Base) -> bytes:
        source = at_the_top(source_of(base.untouched), quietly(code))
        return handed_in(base, "untouched", source, id)

    return Attack(id, "score", says, Expected(status, because, "wrong"), build, in_suite=in_suite)


def _door(id: str, says: str, top: str, *edits: tuple[str, str], in_suite: bool = False) -> Attack:
    """Insert code next to a mask that trains well, so that only changes in the harness could earn points."""

    def build(base: Base) -> bytes:
        source = at_the_top(edited(source_of(base.masked), *edits), top)
        return handed_in(base, "masked", source, id)

    expected = Expected(("graded", "not judged"), rf"The symptom is|did not finish|{_ASKS}", "masked")
    return Attack(id, "score", says, expected, build, in_suite=in_suite)


_PAYLOAD = repr(quietly(_RECORDER + _CHECKS))

ATTACKS = (
    _patch("patched_recorder", "replaces what makes the records of batches, the validation and every check",
        _RECORDER + _CHECKS, in_suite=True),
    _patch("patched_checks", "replaces every check by one that finds everything sound", _CHECKS,
        because="edit fixes nothing", status=("graded",)),
    _patch(
        "patched_save",
        "replaces torch.save by one that saves weights trained in secret, with figures to match",
        _RECORDER
        + _CHECKS
        + _SECRET_WEIGHTS
        + """
import torch
_save, _weights, _accuracy = torch.save, *_secret_weights()
torch.save = lambda state, *arguments, **options: _save({**state, "model": _weights}, *arguments, **options)
harness.run.experiment.Experiment.evaluate = lambda *arguments: {"val_loss": 0.2, "val_accuracy": _accuracy}
""",
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
    _door("code_in_an_annotation", "changes the harness in an annotation, which Python evaluates",
        f"def helper(x: exec({_PAYLOAD})):\n    return x\n", in_suite=True),
    _door("code_in_a_default", "changes the harness in a default argument",
        f"def helper(x=exec({_PAYLOAD})):\n    return x\n"),
    _door("code_in_a_decorator", "changes the harness in a decorator",
        f"def run(function):\n    exec({_PAYLOAD})\n    return function\n\n\n@run\ndef helper():\n    pass\n"),
    _door("reflection_by_a_library", "reaches Python's modules by calls of ordinary libraries",
        "import operator\nimport torch\nreach = operator.attrgetter('os.sys.modules')\n"
        f"reach(torch)['builtins'].exec({_PAYLOAD})\n"),
    _door("attributes_copied_between_objects", "copies its own code over a method of torch",
        "import functools\nimport torch\ndef step(self, closure=None):\n    return None\n"
        "functools.update_wrapper(torch.optim.SGD.step, step, assigned=('__doc__',), updated=('__dict__',))\n"),
    _door("closure_after_the_recorder", "hands the optimizer a function that acts after the recorder has looked",
        "def short(optimizer, *arguments):\n    optimizer.param_groups[0]['lr'] = 0.1\n",
        (_SGD, _SGD.replace("return", "optimizer =")
         + "    optimizer.register_step_post_hook(short)\n    return optimizer\n")),
    _door("optimizer_in_disguise", "gives its optimizer another class, whose steps are not what it says",
        "import torch\nclass Disguised(torch.optim.SGD):\n    def step(self, closure=None):\n"
        "        torch.nn.utils.clip_grad_norm_(self.param_groups[0]['params'], 0.3)\n"
        "        return super().step(closure)\n", (_SGD, _SGD.replace("torch.optim.SGD", "Disguised"))),
    _door("lying_gradient", "trains through a function whose backward pass says something else than its forward pass",
        "import torch\nclass Small(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, loss):\n"
        "        return loss.clone()\n    @staticmethod\n    def backward(ctx, gradient):\n"
        "        return gradient * 0.01\n",
        ("F.cross_entropy(outputs, labels)", "Small.apply(F.cross_entropy(outputs, labels))")),
    _door("marks_the_process", "leaves a mark that tells a check's load from the run's",
        "import torch\ntorch.nn.Linear.loads = getattr(torch.nn.Linear, 'loads', 0) + 1\n"),
)  # fmt: skip
