"""Watching ordinary loops: a sound loop has no finding, each fault has its own, and watching changes no weight."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import trainwreck
from trainwreck.checks import ALL
from trainwreck.hooks import Hooks
from trainwreck.state import Watch
from trainwreck.trial import Trial

Edit = dict[str, str]
LOOP = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main():
    torch.manual_seed(0)
    x = torch.randn(256, 20)
    y = x[:, :5].argmax(1)
    train, val = TensorDataset(x[:192], y[:192]), TensorDataset(x[192:], y[192:])
    train, val = DataLoader(train, 32, shuffle=True), DataLoader(val, 32)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        model.train()
        for inputs, labels in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum(int((model(inputs).argmax(1) == labels).sum()) for inputs, labels in val)
    return [p.detach().clone() for p in model.parameters()]
"""
# By outcome: the edits that break the loop.
FAULTS: dict[str, tuple[tuple[str, str], ...]] = {
    "gradients/stale": (("            optimizer.zero_grad()\n", ""),),
    "gradients/empty": (("            optimizer.step()\n", "            optimizer.zero_grad(); optimizer.step()\n"),),
    "gradients/dropped": (
        (
            "            loss.backward()\n",
            "            loss.backward(retain_graph=True); optimizer.zero_grad(); loss.backward()\n",
        ),
    ),
    "ownership/not-owned": (("    for epoch in", "    model[3] = nn.Linear(64, 5)\n    for epoch in"),),
    "ownership/frozen": (("    for epoch in", "    model[0].bias.requires_grad_(False)\n    for epoch in"),),
    "ownership/nothing-moves": (("lr=1e-2", "lr=0.0"),),
    "modes/trains-in-eval-mode": (("        model.train()\n", "        model.eval()\n"),),
    "modes/evaluates-in-training-mode": (("        model.eval()\n", ""),),
    "loss-form/normalized-twice": (("(model(inputs), labels)", "(model(inputs).softmax(1), labels)"),),
    "loss-form/other-dimension": (("(model(inputs), labels)", "(model(inputs).log_softmax(0), labels)"),),
    "loss-form/not-logarithms": (("F.cross_entropy(", "F.nll_loss("),),
    "shapes/all-pairs": (
        ("nn.Linear(64, 5)", "nn.Linear(64, 1)"),
        ("F.cross_entropy(model(inputs), labels)", "((model(inputs) - labels.float()) ** 2).mean()"),
        ("right = ", "right = 0 and "),
    ),
    "labels/constant": (("    y = x[:, :5].argmax(1)\n", "    y = torch.ones(256, dtype=torch.long)\n"),),
    "scaling/clips-late": (
        ("            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n            optimizer.step()\n",
         "            optimizer.step()\n            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
    ),
}  # fmt: skip


# Alarms that follow from another one.
FOLLOWS = {
    "gradients/empty": ("gradients/dropped", "ownership/nothing-moves"),
    "ownership/not-owned": ("ownership/foreign",),
}


def broken(edits: tuple[tuple[str, str], ...]) -> str:
    source = LOOP
    for find, replace in edits:
        assert source.count(find) == 1, find
        source = source.replace(find, replace)
    return source


def main_of(source: str, folder: Path) -> Callable[[], list[Tensor]]:
    """Return the function `main` of a script, compiled as a file of its own."""
    path = folder / "train.py"
    path.write_text(source, encoding="utf-8")
    names: dict[str, Callable[[], list[Tensor]]] = {}
    exec(compile(source, str(path), "exec"), names)
    return names["main"]


def watched(source: str, folder: Path, steps: int = 20) -> Watch:
    """Watch a script without trials, which would fork this process."""
    watch = Watch(ALL, steps)
    with Hooks(watch):
        main_of(source, folder)()
        watch.end()
    assert watch.errors == {}
    return watch


def test_a_sound_loop_has_no_finding(tmp_path: Path) -> None:
    watch = watched(LOOP, tmp_path)
    assert watch.findings == []
    assert watch.step == 24


@pytest.mark.parametrize("outcome", FAULTS)
def test_a_fault_is_found_at_its_line(outcome: str, tmp_path: Path) -> None:
    found = {f"{one.check}/{one.outcome}": one for one in watched(broken(FAULTS[outcome]), tmp_path).findings}
    assert outcome in found
    assert found[outcome].place.line == 0 or found[outcome].place.file == str(tmp_path / "train.py")
    alarms = {name for name, one in found.items() if one.level == "alarm"}
    assert alarms <= {outcome, *FOLLOWS.get(outcome, ())}


@pytest.mark.parametrize("outcome", [one for one in FAULTS if one.startswith("ownership/")])
def test_a_finding_about_an_optimizer_names_the_line_that_made_it(outcome: str, tmp_path: Path) -> None:
    source = broken(FAULTS[outcome])
    made = next(number for number, line in enumerate(source.splitlines(), 1) if "optimizer = torch" in line)
    lines = {one.name: one.place.line for one in watched(source, tmp_path).findings}
    assert lines[outcome] == made


@pytest.mark.parametrize(
    ("condition", "found"), [("True", set()), ("not wrapped.training", {"modes/trains-in-eval-mode"})]
)
def test_a_wrapper_has_the_mode_of_the_network_inside(condition: str, found: set[str], tmp_path: Path) -> None:
    edits = (
        ("    optimizer = torch", "    wrapped = nn.DataParallel(model)\n    optimizer = torch"),
        ("        model.train()\n", f"        if {condition}:\n            wrapped.train()\n"),
        ("F.cross_entropy(model(inputs)", "F.cross_entropy(wrapped(inputs)"),
    )
    assert {f"{one.check}/{one.outcome}" for one in watched(broken(edits), tmp_path).findings} == found


JOINT = """
import torch
import torch.nn.functional as F
from torch import nn

def main():
    torch.manual_seed(0)
    maker, judge = nn.Linear(4, 8), nn.Linear(8, 1)
    first, second = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())

    def losses(real):  # both, from one forward pass
        made = maker(torch.randn(16, 4))
        fooled, fake, true = judge(made), judge(made.detach()), judge(real)
        one, zero = torch.ones(16, 1), torch.zeros(16, 1)
        judged = F.binary_cross_entropy_with_logits(true, one) + F.binary_cross_entropy_with_logits(fake, zero)
        return F.binary_cross_entropy_with_logits(fooled, one), judged

    for _ in range(24):
        of_maker, of_judge = losses(torch.randn(16, 8) + 2)
        first.zero_grad()
        of_maker.backward()
        first.step()
        second.zero_grad()
        of_judge.backward()
        second.step()
"""


def test_a_pass_is_judged_by_the_calls_that_it_goes_through(tmp_path: Path) -> None:
    found = {one.name for one in watched(JOINT, tmp_path).findings}
    assert not {name for name in found if name.startswith("gradients/")}


def test_a_replaced_layer_is_one_fault_and_hides_no_other(tmp_path: Path) -> None:
    edits = (*FAULTS["ownership/not-owned"], *FAULTS["scaling/clips-late"])
    found = [one.name for one in watched(broken(edits), tmp_path).findings if one.level == "alarm"]
    assert found == ["ownership/not-owned", "scaling/clips-late"]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_network_can_be_traced_under_watch(tmp_path: Path) -> None:
    edits = (
        ("        model.train()\n", "        model.train()\n        torch.jit.trace(model.eval(), x); model.train()\n"),
    )
    assert watched(broken(edits), tmp_path).findings == []


def test_watching_changes_no_weight(tmp_path: Path) -> None:
    plain = main_of(LOOP, tmp_path)()
    with trainwreck.watch(steps=7, quiet=True) as watch:
        seen = main_of(LOOP, tmp_path)()
    assert watch.step == 7
    assert all(torch.equal(one, other) for one, other in zip(plain, seen, strict=True))


@pytest.mark.parametrize("largest", [1, 2**30])
def test_a_training_that_is_too_large_gets_no_trials(
    largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Trial] = []
    monkeypatch.setattr("trainwreck.state.MOST_COPIED", largest)

    def note(trial: Trial, step: int) -> dict[str, float]:
        made.append(trial)
        return {"step": step}

    monkeypatch.setattr("trainwreck.state.begin_trial", note)
    with trainwreck.watch(quiet=True, select=["overfit", "metric"]) as watch:
        main_of(LOOP, tmp_path)()
    assert [one.name for one in watch.findings] == (["overfit/left-out"] if largest == 1 else [])
    assert bool(made) == (largest > 1)


def test_an_optimizer_that_fails_does_not_blind_the_watch(tmp_path: Path) -> None:
    fails_once = """
    steps = []

    def fail(*_):
        steps.append(1)
        if len(steps) == 1:
            raise RuntimeError("the first step fails")

    optimizer.register_step_pre_hook(fail)
    for epoch in"""
    guarded = "            with contextlib.suppress(RuntimeError):\n                optimizer.step()\n"
    only_then = "(model(inputs).softmax(1) if len(steps) == 1 else model(inputs), labels)"
    edits = (
        ("    for epoch in", fails_once),
        ("            optimizer.step()\n", guarded),
        ("(model(inputs), labels)", only_then),
    )
    source = broken(edits)
    found = {one.name for one in watched(f"import contextlib\n{source}", tmp_path).findings}
    assert "loss-form/normalized-twice" in found


def test_hooks_leave_nothing_behind() -> None:
    before = (
        nn.Module.__call__,
        torch.autograd.backward,
        DataLoader.__iter__,
        torch.optim.lr_scheduler.LRScheduler.step,
    )
    hooks = Hooks(Watch(ALL))
    hooks.install()
    assert nn.Module.__call__ is not before[0]
    hooks.remove()
    hooks.remove()
    after = (
        nn.Module.__call__,
        torch.autograd.backward,
        DataLoader.__iter__,
        torch.optim.lr_scheduler.LRScheduler.step,
    )
    assert after == before
    F.mse_loss(torch.zeros(2), torch.zeros(2))


def test_watching_shortens_no_epoch(tmp_path: Path) -> None:
    loader: DataLoader[tuple[Tensor, ...]] = DataLoader(TensorDataset(torch.arange(12.0)[:, None]), 4)
    layer = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    with trainwreck.watch(100, quiet=True, select=["gradients"]) as state:
        for _ in range(9):
            for (inputs,) in loader:
                optimizer.zero_grad()
                layer(inputs).sum().backward()
                optimizer.step()
    assert state.step == 27


def test_a_check_that_raises_is_left_out(tmp_path: Path) -> None:
    class Broken(ALL[0]):  # type: ignore[misc, valid-type]
        name = "broken"

        def on_loss(self, loss: object) -> None:
            raise ZeroDivisionError

    watch = Watch([Broken, *ALL])
    with Hooks(watch):
        main_of(broken(FAULTS["gradients/stale"]), tmp_path)()
        watch.end()
    assert "ZeroDivisionError" in watch.errors["broken"]
    assert [one.outcome for one in watch.findings] == ["stale"]


def test_a_script_without_an_optimizer_is_watched(tmp_path: Path) -> None:
    by_hand = broken(
        (
            ("            optimizer.zero_grad()\n", "            model.zero_grad()\n"),
            (
                "            optimizer.step()\n",
                "            with torch.no_grad():\n                for p in model.parameters(): p -= 0.1 * p.grad\n",
            ),
        )
    )
    watch = watched(by_hand, tmp_path)
    assert watch.findings == [] and watch.step > 10


def run(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(f"{source}\ntorch.save(main(), 'weights.pt')\n", encoding="utf-8")
    command = [sys.executable, "-m", "trainwreck", *options, "train.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_finds_a_fault_and_writes_no_file_of_the_script(tmp_path: Path) -> None:
    done = run(tmp_path, broken(FAULTS["gradients/stale"]), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert found["errors"] == {}
    assert [one["outcome"] for one in found["findings"] if one["level"] == "alarm"] == ["stale"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".pt"] == []


def test_the_command_says_that_a_sound_script_is_sound(tmp_path: Path) -> None:
    done = run(tmp_path, LOOP, "--steps", "50")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "Watched 24 updates: nothing wrong was found.\n"


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "watch.md").read_text(encoding="utf-8")
    script, shown = re.findall(r"```python\n(import torch\n.*?)```.*?train\.py\n(.*?)```", page, re.DOTALL)[0]
    if find_spec("harness") is None:  # only the course has exercises
        shown = re.sub("  Practise: .*\n", "", shown)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "trainwreck", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == shown
    listed = re.findall(r"^\| ([a-z-]+) \| ", page, re.MULTILINE)
    assert [name for name in listed if name != "---"] == ["check", *(check.name for check in ALL)]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (LOOP.replace("nn.Linear(64, 5)", "nn.Linear(63, 5)"), "shapes cannot be multiplied"),
        ("def main():\n    raise SystemExit(4)\n", "the script exited with status 4"),
        ("def main():\n    return 1\n", "without an update"),
    ],
)
def test_a_script_that_fails_or_trains_nothing_is_not_sound(source: str, why: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"import torch\n{source}")
    assert done.returncode == 2, done.stderr
    assert why in done.stderr


def test_children_leave_no_folder(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "train.py").write_text(f"{LOOP}\nmain()\n", encoding="utf-8")
    command = [sys.executable, "-m", "trainwreck", "train.py"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert list((tmp_path / "tmp").glob("trainwreck-*")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="trials are forked on Linux alone")
def test_ctrl_c_ends_a_trial_and_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    slow = LOOP.replace("            optimizer.step()\n", "            optimizer.step(); time.sleep(0.5)\n")
    (tmp_path / "train.py").write_text(f"import time\n{slow}\nmain()\n", encoding="utf-8")
    command = [sys.executable, "-m", "trainwreck", "--steps", "2", "--select", "overfit", "train.py"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True) as process:
        while len(list((tmp_path / "tmp").rglob("trainwreck-*"))) < 2:  # one of the run, and one of its trial
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    time.sleep(1)
    mark = str(tmp_path).encode()
    left = [path for path in Path("/proc").glob("[0-9]*/environ") if mark in read_or_nothing(path)]
    assert left == []
    assert list((tmp_path / "tmp").glob("trainwreck-*")) == []


def read_or_nothing(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended, or belongs to somebody else
        return b""


def test_a_library_may_fill_its_cache(tmp_path: Path) -> None:
    fill = "import os, pathlib\ncache = pathlib.Path(os.environ['TORCH_HOME'], 'model')\ncache.mkdir(parents=True)\n"
    fill += "(cache / 'part').write_text('weights')\nos.rename(cache / 'part', cache / 'whole')\n"
    fill += "assert (cache / 'whole').read_text() == 'weights'\n"
    (tmp_path / "train.py").write_text(f"{fill}{LOOP}\nmain()\n", encoding="utf-8")
    command = [sys.executable, "-m", "trainwreck", "--select", "modes", "train.py"]
    environment = {**os.environ, "TORCH_HOME": str(tmp_path / "cache")}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert [path.name for path in (tmp_path / "cache" / "model").iterdir()] == ["whole"]


def test_a_missing_script_is_the_users_mistake(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainwreck", "none.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "There is no file none.py: name a training script or a notebook.\n")


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Title"]}, *code]})


def test_a_notebook_is_watched_like_a_script(tmp_path: Path) -> None:
    source = broken(FAULTS["gradients/stale"])
    cells = ("%load_ext autoreload\n!pip install nothing\nimport torch", "%%bash\nls", f"%%time\n{source}", "main()")
    (tmp_path / "train.ipynb").write_text(notebook(*cells), encoding="utf-8")

    def report() -> str:
        command = [sys.executable, "-m", "trainwreck", "--select", "gradients", "train.ipynb"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    line = 2 + next(at for at, text in enumerate(source.splitlines()) if "optimizer.step()" in text)
    assert f"Where: train.ipynb cell 3:{line} in main()" in report()
    commented = source.replace("optimizer.step()", "optimizer.step()  # trainwreck: ignore[stale]")
    (tmp_path / "train.ipynb").write_text(notebook(*cells[:2], f"%%time\n{commented}", "main()"), encoding="utf-8")
    assert report() == "Watched 12 updates: 1 suppressed, nothing else was found.\n"
    (tmp_path / "train.ipynb").write_text("{}", encoding="utf-8")
    assert report() == "Watched 0 updates, then the script failed.\n"


def test_losses_inside_function_transforms_do_not_break_the_training(tmp_path: Path) -> None:
    source = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))

def loss_of(weights, inputs, label):
    return F.cross_entropy(torch.func.functional_call(model, weights, inputs[None]), label[None])

def main():
    for _ in range(20):
        weights = {name: one.detach() for name, one in model.named_parameters()}
        gradients = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))(weights, x, y)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name].mean(0)
        optimizer.step()
"""
    done = run(tmp_path, source, "--json")
    found = json.loads(done.stdout)
    assert found["failure"] == "" and found["steps"] == 12, done.stderr
    assert found["errors"] == {} and [one for one in found["findings"] if one["level"] == "alarm"] == []
