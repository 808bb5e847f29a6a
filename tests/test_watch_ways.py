"""The ways to watch a training: in a test, in a notebook, in Lightning, in Transformers; and what they leave alone."""

import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn

import trainwreck
from trainwreck import trial
from trainwreck.pytest_plugin import Watcher
from trainwreck.session import Session

TRAINING = """import sys
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 20)
loader = DataLoader(TensorDataset(x, x[:, :5].argmax(1)), 32, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

def train(zero=True):
    for inputs, labels in loader:
        if zero:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
"""
STALE = "alarm: gradients/stale"


class Node:
    """The part of a pytest item that the fixture uses."""

    def __init__(self) -> None:
        self.sections: list[str] = []

    def add_report_section(self, when: str, key: str, content: str) -> None:
        self.sections.append(content)


def function() -> Callable[[bool], None]:
    names: dict[str, Callable[[bool], None]] = {}
    exec(compile(TRAINING, "train.py", "exec"), names)
    return names["train"]


def output(*words: str | Path, cwd: Path, **environment: str) -> str:
    """Return what a command of this Python prints on both streams. It must exit with 0 or 1."""
    command = [sys.executable, "-W", "ignore", *map(str, words)]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout + done.stderr


def test_both_pages_show_the_same_example() -> None:
    root = Path(__file__).parents[1]
    pages = [(root / name).read_text(encoding="utf-8") for name in ("docs/watch.md", "trainwreck/README.md")]
    ours, readme = (
        re.findall(r"```(?:python|console)\n((?:import torch|\$ python)\n?.*?)```", one, re.S) for one in pages
    )
    ours = [re.sub("  Practise: .*\n", "", one) for one in ours]  # only the course has exercises
    assert readme == ours[: len(readme)]


@pytest.mark.parametrize("name", trainwreck.__all__)
def test_every_public_name_is_there(name: str) -> None:
    code = f"import trainwreck; assert trainwreck.{name}.__module__.startswith('trainwreck.')"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("steps", [0, -1])
def test_no_steps_to_watch_is_an_error_and_no_hook_stays(steps: int) -> None:
    before = nn.Module.__call__
    with pytest.raises(ValueError, match="watch at least 1 update"), trainwreck.watch(steps):
        pass
    assert nn.Module.__call__ is before


def test_a_mode_that_the_script_entered_stays_when_the_hooks_go() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with trainwreck.watch(steps=1, quiet=True), torch.device("meta"):
        nn.functional.mse_loss(model(torch.ones(3, 4, device="cpu")), torch.ones(3, 2, device="cpu")).backward()
        optimizer.step()
        assert torch.empty(2).is_meta
    assert not torch.empty(2).is_meta


def test_a_session_that_ends_early_takes_the_hooks_out() -> None:
    before = nn.Module.__call__
    session = Session()
    session.begin(3)
    assert nn.Module.__call__ is not before
    report = session.end()
    assert report is not None
    assert report.steps == 0
    assert nn.Module.__call__ is before
    assert session.end() is None


@pytest.mark.parametrize("data", ["float", "bfloat16"])
def test_no_check_needs_numpy(data: str, tmp_path: Path) -> None:
    code = f"""import sys
sys.modules["numpy"] = None
{TRAINING}
import trainwreck
x, y = x.{data}(), x[:, :5].argmax(1)
model = model.{data}()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(x[32:], y[32:]), 32, shuffle=True)
others = DataLoader(TensorDataset(x[:32], y[:32]), 8)
with trainwreck.watch(steps=20, quiet=True) as watch:
    for epoch in range(3):
        model.train()
        train()
        model.eval()
        with torch.no_grad():
            for inputs, labels in others:
                model(inputs)
print(watch.step, watch.errors)
"""
    assert output("-c", code, cwd=tmp_path) == "20 {}\n"


# --- files


def test_a_watched_process_removes_renames_and_replaces_no_file(tmp_path: Path) -> None:
    home, box = tmp_path / "home", tmp_path / "box"
    (home / "kept").mkdir(parents=True)
    box.mkdir()
    for name in ("best.pt", "log", "kept/old.pt"):
        (home / name).write_text(name)
    code = """
import os, shutil, sys, tempfile
from pathlib import Path
from trainwreck.guard import redirect_writes
home = Path(sys.argv[1])
redirect_writes(Path(sys.argv[2]))
(home / "new.tmp").write_text("new")
os.replace(home / "new.tmp", home / "best.pt")
assert (home / "best.pt").read_text() == "new"
os.remove(home / "best.pt")
(home / "log").rename(home / "log.1")
assert (home / "log.1").read_text() == "log"
assert not (home / "log").exists() and not (home / "best.pt").exists()
shutil.rmtree(home / "kept")
assert not (home / "kept" / "old.pt").exists() and sorted(os.listdir(home)) == ["log.1"]
os.makedirs(home / "kept")
assert os.listdir(home / "kept") == [] and {entry.name for entry in os.scandir(home)} == {"kept", "log.1"}
(home / "kept" / "new.pt").write_text("new")
try:
    os.rmdir(home / "kept")
except OSError:
    os.remove(home / "kept" / "new.pt")
    os.rmdir(home / "kept")
assert not (home / "kept").exists()
os.symlink("log", home / "latest")
for fails in (os.remove, os.rmdir, shutil.rmtree, lambda path: os.rename(path, home / "x")):
    try:
        fails(home / "none")
    except FileNotFoundError:
        continue
    raise AssertionError(fails)
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "a").write_text("a")
assert not Path(folder).exists()
"""
    assert output("-c", code, home, box, cwd=tmp_path) == ""
    found = {path.relative_to(home).as_posix(): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert found == {name: name for name in ("best.pt", "log", "kept/old.pt")}


def test_a_watched_process_finds_what_it_has_written(tmp_path: Path) -> None:
    home, box = tmp_path / "home", tmp_path / "box"
    for folder in (home / "data", box):
        folder.mkdir(parents=True)
    (home / "data" / "old.txt").write_text("old")
    code = """
import io, os, sys, tarfile, tempfile
from pathlib import Path
from trainwreck.guard import redirect_writes
os.chdir(sys.argv[1])
tempfile.tempdir = sys.argv[2]
redirect_writes(Path(sys.argv[2]))
os.makedirs("runs/version_0")
assert os.path.isdir("runs/version_0") and Path("runs").is_dir() and os.access("runs", os.W_OK)
Path("data/new.txt").write_text("new")
with tarfile.open(fileobj=(file := io.BytesIO()), mode="w") as archive:
    archive.add("data", "again")
file.seek(0)
with tarfile.open(fileobj=file) as archive:
    archive.extractall()
assert sorted(os.listdir("data")) == sorted(os.listdir("again")) == ["new.txt", "old.txt"]
assert sorted(path.name for path in Path().rglob("*.txt")) == ["new.txt", "new.txt", "old.txt", "old.txt"]
assert Path("again/old.txt").read_text() == "old" and os.path.getsize("data/new.txt") == 3
for fails, error in (("runs", FileExistsError), ("none/x", FileNotFoundError)):
    try:
        os.mkdir(fails)
    except error:
        continue
    raise AssertionError(fails)
"""
    assert output("-c", code, home, box, cwd=tmp_path) == ""
    assert [path.relative_to(home).as_posix() for path in home.rglob("*")] == ["data", "data/old.txt"]


@pytest.mark.skipif(find_spec("safetensors") is None, reason="needs safetensors")
def test_a_watched_process_writes_no_safetensors(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    code = """
import torch
from pathlib import Path
from trainwreck.guard import redirect_writes
redirect_writes(Path("box"))
from safetensors.torch import save_file
save_file({"a": torch.zeros(2)}, "weights.safetensors")
"""
    assert output("-c", code, cwd=tmp_path) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["box"]


# --- pytest


def test_the_fixture_fails_a_test_with_the_findings(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"{TRAINING}\nfor epoch in range(2):\n    train('zero' in sys.argv)\n")
    (tmp_path / "test_training.py").write_text(
        "def test_bad(watched): watched('train.py')\n"
        "def test_allowed(watched):\n"
        "    assert len(watched('train.py', steps=4, allow=['gradients/stale']).findings) == 1\n"
        "def test_good(watched): assert watched('train.py', 'zero').steps == 12\n"
    )
    said = output("-m", "pytest", "-p", "trainwreck.pytest_plugin", "-rP", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "1 failed, 2 passed" in said
    bad, _, passed = said.partition(" PASSES ")
    assert re.search(rf"^E +trainwreck\.session\.Unsound: {STALE}$", bad, re.MULTILINE)
    assert "Captured trainwreck call" in bad and "Where: train.py:18 in train() (after 2 updates)" in bad
    assert "test_training.py:1: " in bad
    assert "in __call__" not in bad and "_watch_script" not in bad  # the failure is at the user's line
    assert STALE in passed and "Watched 4 updates" in passed


def test_the_fixture_watches_a_function() -> None:
    node = Node()
    watched = Watcher(node)
    with pytest.raises(trainwreck.Unsound, match=STALE):
        watched(function(), False)
    assert STALE in node.sections[0]
    found = watched(function(), False, steps=5, allow=("gradients/stale",))
    assert ([finding.outcome for finding in found.findings], found.steps) == (["stale"], 5)


@pytest.mark.parametrize(
    ("source", "why"),
    [("print(1 / 0)", "ZeroDivisionError"), ("print()", "without an update"), (None, "There is no file")],
)
def test_a_script_that_trains_nothing_is_not_sound(source: str | None, why: str, tmp_path: Path) -> None:
    if source is not None:
        (tmp_path / "train.py").write_text(source)
    with pytest.raises((RuntimeError, FileNotFoundError), match=why):
        Watcher(Node())(tmp_path / "train.py", allow=("gradients/stale",))


def test_a_wrong_use_of_the_fixture_is_refused() -> None:
    watched = Watcher(Node())
    with pytest.raises(ValueError, match=r"gradients/state\. There are: .*gradients/stale"):
        watched(function(), allow=["gradients/state"])
    with pytest.raises(ValueError, match="at least 1 update"):
        watched(function(), steps=0)
    with pytest.raises(RuntimeError, match="without an update"):
        watched(lambda: None)


# --- notebooks


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Run a notebook in a real kernel. Return for each cell what it shows, and the names of errors."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    sources = [
        "%load_ext trainwreck",
        TRAINING,
        "%%trainwreck --steps 5\n\ntrain(zero=False)\n'the last value'",
        "%trainwreck on --steps 12\n",
        "train(zero=False)",
        "train(zero=False)",
        "%trainwreck off",
        "%trainwreck later",
        "%%trainwreck\ntrain(zero=False)\n1 / 0",
        "%%trainwreck\n\n\nfor inputs, labels in loader:\n"
        "    loss = F.cross_entropy(model(inputs), labels)\n    loss.backward()\n    optimizer.step()",
        "import os, trainwreck\nos.fork = lambda: 1 / 0\nwith trainwreck.watch(): train(); train()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder / name))
        place = {"metadata": {"path": str(folder)}}
        nbclient.NotebookClient(notebook, allow_errors=True, resources=place, timeout=300).execute()
    return ["".join(map(shown, cell.outputs)) for cell in notebook.cells]


def shown(part: dict[str, str]) -> str:
    return part.get("text") or part.get("ename") or str(part.get("data"))


def test_a_cell_is_watched_and_places_name_cell_and_line(cells: list[str]) -> None:
    assert cells[:2] == ["", ""]
    assert STALE in cells[2] and "Where: In [2]:18 in train() (after 2 updates)" in cells[2]
    assert "Watched 5 updates: 1 alarm" in cells[2]
    assert "the last value" in cells[2]
    assert "Where: In [10]:7 (after 2 updates)" in cells[9]  # the line in the cell, counted from the magic command


def test_several_cells_are_watched_together(cells: list[str]) -> None:
    assert cells[3].startswith("Watching the next 12 updates.")
    assert cells[4] == ""
    assert "Watched 12 updates: 1 alarm" in cells[5]
    assert cells[6] == cells[5]
    assert cells[7].startswith("Usage: ")


def test_a_cell_that_fails_is_reported_and_fails(cells: list[str]) -> None:
    assert cells[8].count("ZeroDivisionError") == 2  # with the traceback, and as the end of the cell
    assert "Watched 8 updates: 1 alarm" in cells[8]


def test_a_kernel_is_not_forked(cells: list[str]) -> None:
    assert "Watched 12 updates: " in cells[10]
    assert "failed" not in cells[10] and "alarm" not in cells[10]


def test_cells_of_ipython_in_a_terminal_are_named(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    code = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in ({TRAINING!r}, "%load_ext trainwreck", "%%trainwreck\\ntrain(zero=False)", "%unload_ext trainwreck"):
    shell.run_cell(cell, store_history=True)
assert "trainwreck" not in shell.magics_manager.magics["cell"]
"""
    assert "Where: In [1]:18 in train() (after 2 updates)" in output("-c", code, cwd=tmp_path, IPYTHONDIR=str(tmp_path))


# --- libraries

LIGHTNING = """
import sys
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
package, fault, way = sys.argv[1:]
if package == "lightning":
    import lightning.pytorch as pl
else:
    import pytorch_lightning as pl
import trainwreck

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1))
        self.head = torch.nn.Linear(64, 5)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, number):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, number):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.body.parameters() if fault == "not-owned" else self.parameters(), 1e-2)

torch.manual_seed(0)
x = torch.randn(256, 20)
y = x[:, :5].argmax(1)
train = DataLoader(TensorDataset(x[:192], y[:192]), 32, shuffle=True)
val = DataLoader(TensorDataset(x[192:], y[192:]), 32)
net = Net()
if fault == "eval-mode":
    net.eval()
# Saves the best weights after each epoch, and removes the previous ones.
best = pl.callbacks.ModelCheckpoint("saved", monitor="val_loss")
callbacks = [best] if way == "plain" else [best, trainwreck.lightning.Watch(strict=way == "strict")]
options = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = pl.Trainer(max_epochs=4, accelerator="cpu", callbacks=callbacks, **options)
try:
    trainer.fit(net, train, val)
except trainwreck.Unsound:
    print("Unsound at update", trainer.global_step)
"""
TRANSFORMERS = """
import sys
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
_, fault, way = sys.argv[1:]
import trainwreck

class Faulty(Trainer):
    def compute_loss(self, model, inputs, *args, **options):
        if fault == "eval-mode":
            model.eval()
        return super().compute_loss(model, inputs, *args, **options)

    def create_optimizer(self, *args):
        optimizer = super().create_optimizer(*args)
        if fault == "not-owned":
            self.model.classifier = torch.nn.Linear(32, 3)
        return optimizer

torch.manual_seed(0)
x = torch.randint(0, 50, (192, 12))
data = [{"input_ids": ids, "labels": ids[0] % 3} for ids in x]
sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
net = BertForSequenceClassification(BertConfig(vocab_size=50, num_labels=3, max_position_embeddings=16, **sizes))
settings = TrainingArguments(
    "saved", num_train_epochs=2, per_device_train_batch_size=16, learning_rate=5e-3, report_to=[], use_cpu=True,
    save_steps=18, eval_strategy="epoch", disable_tqdm=True,
)
callbacks = [] if way == "plain" else [trainwreck.transformers.Watch(strict=way == "strict")]
trainer = Faulty(net, settings, train_dataset=data[:160], eval_dataset=data[160:], callbacks=callbacks)
try:
    trainer.train()
except trainwreck.Unsound:
    print("Unsound at update", trainer.state.global_step)
"""
END = """
print("Weights", sum(p.double().sum().item() for p in net.parameters()), torch.rand(1).item())
import pathlib
print("Files", sorted(map(str, pathlib.Path("saved").rglob("*"))))
"""
PROGRAMS = {"lightning": LIGHTNING, "pytorch_lightning": LIGHTNING, "transformers": TRANSFORMERS}


def run_library(package: str, fault: str, way: str, folder: Path) -> str:
    for name in (package, "accelerate") if package == "transformers" else (package,):
        if find_spec(name) is None:
            pytest.skip(f"needs {name}")
    folder.mkdir()
    return output("-c", PROGRAMS[package] + END, package, fault, way, cwd=folder)


@pytest.mark.slow
@pytest.mark.parametrize("package", PROGRAMS)
def test_a_callback_finds_nothing_in_a_sound_training_and_changes_nothing(package: str, tmp_path: Path) -> None:
    plain = run_library(package, "", "plain", tmp_path / "plain")
    seen = run_library(package, "", "strict", tmp_path / "seen")
    assert re.search(r"^Watched 12 updates: (?!.*alarm)", seen, re.MULTILINE), seen
    for line in ("Weights", "Files"):
        pattern = re.compile(rf"^{line} .*$", re.MULTILINE)
        assert pattern.findall(plain) == pattern.findall(seen) != []


@pytest.mark.slow
@pytest.mark.parametrize("package", PROGRAMS)
@pytest.mark.parametrize(
    ("fault", "outcome"), [("not-owned", "ownership/not-owned"), ("eval-mode", "modes/trains-in-eval-mode")]
)
def test_a_callback_finds_a_fault(package: str, fault: str, outcome: str, tmp_path: Path) -> None:
    said = run_library(package, fault, "strict", tmp_path / "run")
    assert f"alarm: {outcome}" in said
    assert "Unsound at update 12" in said


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_a_missing_library_is_named(name: str) -> None:
    if find_spec(name) is not None:
        pytest.skip(f"{name} is there")
    with pytest.raises(ModuleNotFoundError, match=f"trainwreck.{name} needs .*: pip install {name}"):
        getattr(trainwreck, name)


def test_the_libraries_are_not_imported_unless_they_are_used() -> None:
    heavy = {"torch", "lightning", "transformers", "IPython"}
    code = f"import trainwreck.pytest_plugin, sys; print(*{heavy} & {{*sys.modules}})"
    assert output("-c", code, cwd=Path.cwd()) == "\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_ends_although_its_parent_no_longer_waits_for_the_answer() -> None:
    end, start = os.pipe()
    os.close(end)
    child = os.fork()
    if not child:
        try:
            trial._answers[:] = [start]
            trial.send_answer({})
        finally:
            os._exit(7)  # the script would go on here, and write a second result
    os.close(start)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


WORKERS = """
import sys
import torch
import torch.nn.functional as F
import trainwreck
from contextlib import nullcontext
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 8)
data = TensorDataset(x, (x[:, 0] > 0).long())
loader = DataLoader(data, 16, shuffle=True, num_workers=2, persistent_workers=sys.argv[2] == "persistent")
held_out = DataLoader(data, 64, num_workers=1)
net = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
checks = ["progress", "metric", "overfit"]  # their trials read other batches
with trainwreck.watch(4, select=checks, quiet=True) if sys.argv[1] == "watched" else nullcontext():
    for epoch in range(3):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(inputs), labels)
            loss.backward()
            optimizer.step()
            print(loss.item())
        with torch.no_grad():
            print(sum(int((net(inputs).argmax(1) == labels).sum()) for inputs, labels in held_out))
"""


@pytest.mark.parametrize("kind", ["new in each epoch", "persistent"])
def test_trials_leave_the_workers_of_loaders_to_the_script(kind: str, tmp_path: Path) -> None:
    Path(tmp_path, "train.py").write_text(WORKERS, encoding="utf-8")
    plain, seen = (
        subprocess.run(
            [sys.executable, "train.py", way, kind],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        ).stdout
        for way in ("plain", "watched")
    )
    assert plain.count("\n") == 51
    assert seen == plain


def test_no_child_is_forked_beside_processes_of_the_script() -> None:
    assert not trial._has_processes()
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    process.start()
    try:
        assert trial._has_processes() and not trial.can_fork()
    finally:
        process.kill()
        process.join()
