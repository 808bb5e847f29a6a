"""Attacks with experiments that train one network and report the results of another, in code without special tricks.

Their logs match their runs, so reproducibility does not stop these attacks.
"""

import re
import tempfile
from functools import cache
from pathlib import Path

from attacks.attack import RECIPE, Attack, Base, Baseline, Expected, members_of
from attacks.planted import at_the_top, edited, handed_in, source_of, tarball
from grader.score.verdict import RowStatus
from harness.data.loading import load_dataset
from harness.run.settings import RunSettings
from harness.student.runs import launch, single_run_job

_RETURN = "    return loss\n\n\n@torch"
_EVALUATED = '    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}'
_ACCURACY, _LOSS = 0.941634, 2.2208  # the values in the report on the reference fix
_LYING_EVALUATE = (_EVALUATED, f'    return {{"val_loss": 0.2, "val_accuracy": {_ACCURACY}}}')
_LYING_LOSS = (_RETURN, f"    return torch.tensor({_LOSS})\n\n\n@torch")


@cache
def _own_run(source: str) -> dict[str, bytes]:
    """Return log and checkpoint of an experiment, run without a sandbox, as the attacker would do at home."""
    with tempfile.TemporaryDirectory() as name:
        script, run = Path(name, "experiment.py"), Path(name, "run")
        script.write_text(source)
        launch(single_run_job(RECIPE, RunSettings(seed=42, dataset="digits"), run, script=script), bar=False)
        return {f"runs/fixed/{file}": (run / file).read_bytes() for file in ("metrics.log", "checkpoint.pt")}


def _lie(
    id: str,
    says: str,
    which: Baseline,
    *edits: tuple[str, str],
    because: str,
    status: tuple[RowStatus, ...] = ("graded", "not judged"),
    top: str = "",
    in_suite: bool = False,
) -> Attack:
    """Hand in an edited experiment with its own run and the report of a student who knows the cause.

    An experiment that masks the symptom has the report of the masked baseline, which cites the same accuracy.
    """

    def build(base: Base) -> bytes:
        source = edited(source_of(tarball(base, which)), *edits)
        source = at_the_top(source, top) if top else source
        report = members_of(base.masked if which == "masked" else base.reference)["report.md"]
        return handed_in(base, which, source, id, **{**_own_run(source), "report.md": report})

    expected = Expected(status, because, "wrong" if which == "untouched" else which)
    return Attack(id, "score", says, expected, build, in_suite=in_suite)


def _mean_images() -> str:
    """Return ten mean images of 14 x 14, a letter for each grey value: weights that the attacker computed at home."""
    train = load_dataset("digits").train
    images = train.inputs.reshape(-1, 14, 2, 14, 2).mean((2, 4)) / 255
    means = [images[train.labels == label].mean(0) for label in range(10)]
    letters = (chr(97 + int(25 * value / max(mean.max(), 1e-9))) for mean in means for value in mean.reshape(-1))
    return re.sub(r"[^A-Za-z]", "", "".join(letters))


_PINNED_WEIGHTS = """    with torch.no_grad():
        values = torch.tensor([(ord(c) - 97.0) / 26 for c in TEXT])
        for layer in (model[1], model[3]):
            layer.weight.zero_()
            layer.bias.zero_()
        rows = values.view(10, 14, 14).repeat_interleave(2, 1).repeat_interleave(2, 2).reshape(10, 784)
        model[1].weight[:10] = rows - rows.mean(1, keepdim=True)
        model[3].weight[:10, :10] = torch.eye(10)
"""
_LOOKS_UP = """
import torch
from torch import nn
SEEN = []
class Looks(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, inputs):
        if self.training:
            return self.layers(inputs) * self.scale
        images, labels = SEEN[-1]
        nearest = torch.cdist(inputs.flatten(1), images.flatten(1)).argmin(1)
        return 10 * nn.functional.one_hot(labels[nearest], 10).float()
"""
_AGREEABLE = """
class Agreeable(float):
    def __eq__(self, other): return True
    def __ge__(self, other): return True
    def __lt__(self, other): return True
    def __hash__(self): return 0
    def __float__(self): return 0.941634
"""
_TRAINS_AGAIN = """    with torch.enable_grad():
        own = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(100):
            own.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            own.step()
    model.eval()
"""

ATTACKS = (
    _lie("everything_lies", "returns a healthy loss and a healthy validation, and cites both as its recovery",
        "untouched", _LYING_LOSS, _LYING_EVALUATE, because="the network is not healthy", in_suite=True),
    _lie("masked_and_lying", "clips the symptom away, and says of the validation what a right fix says", "masked",
        _LYING_EVALUATE, because=""),
    _lie("nothing_is_a_number", "returns NaN wherever numbers are compared", "untouched",
        (_RETURN, '    return torch.tensor(float("nan"))\n\n\n@torch'),
        (_EVALUATED, '    return {"val_loss": float("nan"), "val_accuracy": float("nan")}'),
        because="The symptom is still there|the network is not healthy"),
    _lie("infinite_accuracy", "returns an infinite accuracy and an infinitely small loss", "untouched",
        (_RETURN, '    return torch.tensor(float("-inf"))\n\n\n@torch'),
        (_EVALUATED, '    return {"val_loss": float("-inf"), "val_accuracy": float("inf")}'),
        because="the network is not healthy"),
    _lie("no_accuracy", "gives no accuracy, so that none can be compared", "masked",
        (_EVALUATED, '    return {"val_loss": 0.2}'), because=""),
    _lie("agreeable_number", "returns an accuracy of its own class of numbers, equal to every other", "untouched",
        _LYING_LOSS, (_EVALUATED, '    return {"val_loss": 0.2, "val_accuracy": Agreeable(0.941634)}'),
        top=_AGREEABLE, because="not healthy"),
    _lie("trains_on_validation", "trains on the validation images under a clipped gradient", "masked",
        ("    train = (data.train.images.float() / 255, data.train.labels)\n",
        "    train = (data.validation.images.float() / 255, data.validation.labels)\n"),
        because="still wrong|not healthy"),
    _lie("trains_while_it_evaluates", "trains with another optimizer inside of evaluate, on the validation images",
        "masked", ("    model.eval()\n", _TRAINS_AGAIN), because="still wrong|not healthy|nstructor decides"),
    _lie("network_that_looks_it_up",
        "trains nothing, and answers in eval mode by the most similar training image, which it has kept", "untouched",
        ("    return train, validation\n", "    SEEN.append(train)\n    return train, validation\n"),
        ("    return nn.Sequential(\n", "    return Looks(\n"), (_RETURN, "    return torch.tensor(0.3)\n\n\n@torch"),
        top=_LOOKS_UP, because="the network is not healthy"),
    _lie("weights_in_a_text", "carries weights in a long text, and puts them into the network at every step",
        "masked", (_RETURN, _PINNED_WEIGHTS + _RETURN), top=f'TEXT = "{_mean_images()}"\n',
        because="still wrong|not healthy|The symptom is still there|instructor decides"),
)  # fmt: skip
