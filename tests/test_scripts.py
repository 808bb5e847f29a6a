"""Scripts with their own loops are recorded, killed and resumed, and evaluated, with equal bytes."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.canonical_setup import run_environment
from harness.data.folder import load_folder
from harness.errors import UserError
from harness.recipes.form import is_script
from harness.recipes.recipe import experiment_source
from harness.run.metrics_log import batch_records, epoch_records, read_metrics_log
from harness.run.options import UNUSED

# A classifier with workers that draw, a bfloat16 product, and a checkpoint after each epoch.
SCRIPT = """
import argparse
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

import track


class Noisy(Dataset):
    def __init__(self, file):
        data = np.load(file)
        self.x, self.y = data["inputs"][:96], data["labels"][:96]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i] / 255 + np.random.normal(0, 0.1)).float(), int(self.y[i])


def main():
    parser = argparse.ArgumentParser()
    for name, kind in (("--data", Path), ("--out", Path), ("--seed", int)):
        parser.add_argument(name, type=kind)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(2)
    order = torch.Generator().manual_seed(args.seed)
    train = DataLoader(Noisy(args.data / "train.npz"), 16, shuffle=True, num_workers=2, generator=order)
    val = DataLoader(Noisy(args.data / "val.npz"), 32)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    first = 0
    if args.resume or args.evaluate:
        state = torch.load(args.out / "ckpt.pt", weights_only=True)
        model.load_state_dict(state["model"])
    if args.resume:
        optimizer.load_state_dict(state["optimizer"])
        order.set_state(state["order"])
        torch.set_rng_state(state["rng"])
        first = state["epoch"]
    for epoch in range(4 if args.evaluate else first, 4):
        model.train()
        for x, y in train:
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        figures(model, val)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        state |= {"order": order.get_state(), "rng": torch.get_rng_state()}
        torch.save(state, args.out / "ckpt.pt")
    if args.evaluate:
        figures(model, val)


@torch.no_grad()
def figures(model, loader):
    model.eval()
    np.random.seed(0)
    hits = [model(x).argmax(1) == y for x, y in loader]
    track.log({"val_accuracy": torch.cat(hits).float().mean(), "time": 1.0})


if __name__ == "__main__":
    main()
"""
RUN = """
import json, os, sys
from pathlib import Path
from harness.errors import UserError
from harness.run.settings import GuardrailPolicy, RunSettings
from harness.scripts.run import evaluate_checkpoint, run_script
from harness.scripts.script import Script

job = json.loads(sys.argv[1])
folder = Path(job["folder"])

def progress(step, steps, loss):
    if step == job.get("kill"):
        os.kill(os.getpid(), 9)

script = Script(Path("experiment.py"), job["source"])
try:
    if job.get("evaluate"):
        found = evaluate_checkpoint(script, Path(job["data"]), folder / "out")
    else:
        settings = RunSettings(seed=3, dataset="digits", **job.get("settings", {}))
        options = {name: job.get(name, False) for name in ("resume", "emulate", "instruments")}
        options["policy"] = GuardrailPolicy(**job.get("policy", {}))
        found = run_script(script, Path(job["data"]), settings, folder, progress=progress, **options).last_epoch
    print(json.dumps(found))
except UserError as error:
    sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_folder("digits").write(tmp_path_factory.mktemp("digits"))


def run(folder: Path, data: Path, source: str = SCRIPT, **job: object) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    text = json.dumps({"folder": str(folder), "data": str(data), "source": source, **job})
    environment = run_environment("portable") | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", RUN, text]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def digests(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("metrics.log", "checkpoint.pt")]


def test_a_script_is_told_from_functions() -> None:
    assert is_script(SCRIPT)
    assert is_script(experiment_source("char_gpt"))
    assert not is_script(experiment_source("digits_mlp"))
    assert not is_script("def broken(:")


def test_a_run_has_equal_bytes_with_emulated_workers_and_after_a_kill(data: Path, tmp_path: Path) -> None:
    whole, emulated, killed = (tmp_path / name for name in ("whole", "emulated", "killed"))
    done = run(whole, data)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "epoch": 3, "val_loss": None, "val_accuracy": pytest.approx(0.5, abs=0.5)
    }  # fmt: skip
    records = read_metrics_log(whole / "metrics.log")
    assert [record["step"] for record in batch_records(records)] == list(range(24))
    assert [record["epoch"] for record in epoch_records(records)] == [0, 1, 2, 3]
    first = batch_records(records)[0]
    assert first["lr"] == 0.1 and first["optimizer_steps"] == 1 and first["stale_grad_ratio"] == 0.0
    assert list(first["grad_mean"]) == ["1.weight", "1.bias", "4.weight", "4.bias"]
    assert run(emulated, data, emulate=True).returncode == 0
    assert run(killed, data, kill=15).returncode == -signal.SIGKILL
    assert run(killed, data, resume=True).returncode == 0
    assert digests(whole) == digests(emulated) == digests(killed)


def test_strict_guardrails_end_a_script_before_its_weights_become_nan(data: Path, tmp_path: Path) -> None:
    bad = "loss = F.cross_entropy(model(x), y) * (float('nan') if epoch == 1 else 1.0)"
    source = SCRIPT.replace("loss = F.cross_entropy(model(x), y)", bad)
    strict: dict[str, Any] = {"policy": {"mode": "strict"}, "instruments": True}
    done = run(tmp_path / "bad", data, source, **strict)
    assert "The guardrails ended the run at step 6, before the optimizer changed the weights: the loss is nan." in (
        done.stderr
    )
    state = torch.load(tmp_path / "bad/step-6.badstep", weights_only=True)
    assert all(tensor.isfinite().all() for tensor in state["model"][0].values())
    assert [tuple(part.shape) for part in state["batch"]] == [(16, 1, 28, 28), (16,)]
    assert list(state["activation_quantiles"]) == ["0", "1", "2", "3", "4", "output"]
    assert len(batch_records(read_metrics_log(tmp_path / "bad/metrics.log"))) == 6
    sound = [run(tmp_path / name, data, **options) for name, options in (("strict", strict), ("default", {}))]
    assert [done.returncode for done in sound] == [0, 0]
    assert digests(tmp_path / "strict") == digests(tmp_path / "default")
    assert not (tmp_path / "default/details.log").exists()
    details = (tmp_path / "strict/details.log").read_text()
    lines = list(map(json.loads, details.splitlines()))
    assert [line["step"] for line in lines] == list(range(24))
    assert list(lines[10]["activation_quantiles"]) == ["1", "4"]
    assert run(tmp_path / "killed", data, kill=15, **strict).returncode == -signal.SIGKILL
    assert run(tmp_path / "killed", data, resume=True, **strict).returncode == 0
    assert (tmp_path / "killed/details.log").read_text() == details


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kill"), [("dates_seq2seq", 100), ("rings_diffusion", 170)])
def test_a_healthy_script_has_equal_bytes_after_a_kill(name: str, kill: int, tmp_path: Path) -> None:
    source, files = experiment_source(name), load_folder(UNUSED[name]).write(tmp_path / "data")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = run(whole, files, source)
    assert done.returncode == 0, done.stderr
    assert run(killed, files, source, emulate=True, kill=kill).returncode == -signal.SIGKILL
    assert run(killed, files, source, emulate=True, resume=True).returncode == 0
    assert digests(whole) == digests(killed)
    figures = json.loads(run(whole, files, source, evaluate=True).stdout)
    assert figures.items() <= json.loads(done.stdout.splitlines()[-1]).items()


def test_the_checkpoint_is_evaluated_by_the_script(data: Path, tmp_path: Path) -> None:
    last = json.loads(run(tmp_path, data).stdout)
    figures = json.loads(run(tmp_path, data, evaluate=True).stdout)
    assert figures == {"val_accuracy": last["val_accuracy"]}


@pytest.mark.parametrize(
    ("edit", "settings", "said"),
    [
        (("F.cross_entropy(model(x), y)", "F.cross_entropy(model(x), z)"), {}, "NameError: name 'z' is not defined"),
        (("            optimizer.step()\n", ""), {}, "made no update of an optimizer"),
        (('args.out / "ckpt.pt")\n    if args', 'args.out / "c.pt")\n    if args'), {}, "wrote no ckpt.pt"),
        (("torch.cat(hits).float().mean()", '"high"'), {}, "track.log got str as 'val_accuracy'"),
        (("def main():", "def main(:"), {}, "line 27 is not valid Python"),
        (("", ""), {"epochs": 2}, "a script, which has no --epochs: change its constants"),
        (("", ""), {"verify": True}, "a script, which has no --verify: edit the script"),
    ],
)
def test_a_mistake_is_named(
    edit: tuple[str, str], settings: dict[str, object], said: str, data: Path, tmp_path: Path
) -> None:
    source = SCRIPT.replace(*edit) if edit[0] else SCRIPT
    done = run(tmp_path, data, source, settings=settings)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_products_in_bfloat16_are_rounded_products_in_float32() -> None:
    code = (
        "import torch; from harness.scripts.numerics import apply_script_numerics\n"
        "torch.manual_seed(0); apply_script_numerics(); torch.set_num_threads(4)\n"
        "a, b = (torch.randn(3, 33, 33).bfloat16() for _ in range(2))\n"
        "assert torch.equal(a @ b, (a.float() @ b.float()).bfloat16()), 'bmm'\n"
        "assert torch.equal(a[0] @ b[0], (a[0].float() @ b[0].float()).bfloat16()), 'mm'\n"
        "assert torch.get_num_threads() == 1"
    )
    environment = run_environment("portable") | {"PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_the_files_of_a_data_set_are_in_one_split_alone() -> None:
    heldout = Path(__file__).parents[1] / "grader" / "replay" / "heldout"
    headers = {"tales": 0, "dates": 0, "shipments": 1, "demand": 1, "rings": 1, "grammar": 0, "pole": 1}
    for name, header in headers.items():
        folder = load_folder(name)
        splits = [file for file in folder.files if file.startswith(("train.", "val."))]
        lines = [folder.files[file].decode().splitlines()[header:] for file in splits]
        lines += [path.read_text(encoding="utf-8").splitlines()[header:] for path in heldout.glob(f"{name}.*")]
        assert len({line for part in lines for line in part}) == sum(map(len, lines))
        assert folder.with_validation(b"x").files == {**folder.files, sorted(splits)[1]: b"x"}
    with pytest.raises(UserError, match="no data set 'tails': did you mean tales"):
        load_folder("tails")
