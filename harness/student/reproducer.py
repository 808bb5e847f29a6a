"""Pack the smallest run of a workspace that still shows its symptom, as a program that needs only torch and NumPy.

`make_reproducer` starts a child process, which searches for the fewest steps, and then for the fewest training
examples, with which the log shows every symptom that the whole run shows.
"""

import dataclasses
import json
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.canonical_setup import COMMON_VARIABLES, portable_variables, usable_cores
from harness.errors import UserError, name_place
from harness.files import write_with_sha256
from harness.recipes.form import is_script
from harness.run.files import CHECKPOINT, DETAILS_LOG, EXPERIMENT, META, METRICS_LOG
from harness.run.launch import ChildJob, Reporter, launch_child, serve
from harness.run.settings import RunSettings
from harness.student.attempts import list_attempts
from harness.student.goal import symptoms_of
from harness.submission.archive import deterministic_tar_gz
from harness.workspace.workspace import Workspace, read_source

if TYPE_CHECKING:
    from harness.run.experiment import TensorData
    from harness.run.training import TrainingRun

TEMPLATES = Path(__file__).parent / "templates"
SCRIPT = "reproduce.py"
_HARNESS = Path(__file__).resolve().parents[1]
# Modules of the harness that experiments import, and what stands for them in the folder.
_PRETRAINED = '''\
"""Pretrained weights, from pretrained.npz in this folder."""

from pathlib import Path

import numpy as np
import torch


def pretrained_weights(name):
    arrays = np.load(Path(__file__).with_name("pretrained.npz"))
    own = [key for key in arrays.files if key.startswith(f"{name}.")]
    return {key.removeprefix(f"{name}."): torch.tensor(arrays[key]) for key in own}
'''


def make_reproducer(workspace: Workspace, path: Path) -> dict[str, Any]:
    """Write a tarball that reproduces the symptom of the workspace's experiment.py, and its digest.

    Return the steps, the examples and the symptoms of the smallest run. Raises `UserError` for a script, for a hidden
    exercise, and if the run shows no symptom.
    """
    recipe = workspace.exercise
    workspace.require_run("broken")
    source = read_source(workspace.experiment)
    if is_script(source):
        raise UserError(
            f"{workspace.experiment} is a script, which already runs by itself: pack it with the folder data/."
        )
    symptoms = symptoms_of(recipe, workspace.settings.dataset)
    if recipe.is_case or not symptoms:
        raise UserError(
            f"{recipe.id} does not say what its symptom is: use python -m harness.trainer --script instead."
        )
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        job = {
            "source": source,
            "path": str(workspace.experiment.resolve()),
            "settings": dataclasses.asdict(workspace.settings),
            "symptoms": [symptom.model_dump(mode="json") for symptom in symptoms],
            "folder": scratch,
        }
        child = ChildJob(
            module="harness.student.reproducer",
            line=json.dumps(job),
            numerics=workspace.settings.numerics,
            label="searching for the smallest run",
            what="search",
            place=str(workspace.experiment),
        )
        found = launch_child(child)
        members = {file.name: file.read_bytes() for file in Path(scratch).iterdir()}
    members |= _files_of(workspace, source, found)
    folder = path.name.removesuffix(".tgz").removesuffix(".tar.gz")
    with name_place(path):
        write_with_sha256(path, deterministic_tar_gz({f"{folder}/{name}": data for name, data in members.items()}))
    return found


def _files_of(workspace: Workspace, source: str, found: dict[str, Any]) -> dict[str, bytes]:
    """Return the files that do not come from the search."""
    meta = workspace.run_folder("broken") / META
    files = {
        EXPERIMENT: source,
        SCRIPT: (TEMPLATES / "reproduce.py.txt").read_text(encoding="utf-8"),
        "README.md": _readme(workspace, found),
        META: meta.read_text(encoding="utf-8"),
    }
    packed = {name: text.encode() for name, text in files.items()}
    if modules := set(re.findall(r"^from harness\.([\w.]+) import", source, re.MULTILINE)):
        packed |= {"harness/__init__.py": b"", "harness/run/__init__.py": b"", "harness/data/__init__.py": b""}
        if "run.schedules" in modules:
            packed["harness/run/schedules.py"] = (_HARNESS / "run" / "schedules.py").read_bytes()
        if "data.pretrained" in modules:
            packed["harness/data/pretrained.py"] = _PRETRAINED.encode()
            packed["harness/data/pretrained.npz"] = (_HARNESS / "data" / "embedded" / "pretrained.npz").read_bytes()
    return packed


def _readme(workspace: Workspace, found: dict[str, Any]) -> str:
    """Return the page that explains the tarball: the symptom, what was tried, and what to add for an escalation."""
    tried = [
        f"- Attempt {one.number}: {'; '.join(item.short for item in one.criteria) or 'not judged'}."
        for one in list_attempts(workspace)
    ]
    lines = (TEMPLATES / "reproduce.md").read_text(encoding="utf-8")
    return lines.format(
        recipe=workspace.recipe,
        title=workspace.exercise.title,
        steps=found["steps"],
        whole_steps=found["whole_steps"],
        examples=found["examples"],
        whole_examples=found["whole_examples"],
        symptoms="\n".join(f"- {says}" for says in found["symptoms"]),
        tried="\n".join(tried) or "- Nothing was tried yet.",
    )


# --- the child process


class _Search:
    """Trains the experiment again and again, with fewer steps and examples each time."""

    def __init__(self, job: dict[str, Any], reporter: Reporter) -> None:
        from harness.data.loading import load_dataset
        from harness.recipes.recipe import Symptom
        from harness.run.experiment import tensor_data

        self.settings = RunSettings(**job["settings"])
        self.data = tensor_data(load_dataset(self.settings.dataset))
        self._symptoms = [Symptom.model_validate(symptom) for symptom in job["symptoms"]]
        self._path, self._source, self._reporter = Path(job["path"]), job["source"], reporter
        self._runs = 0

    def train(self, folder: Path, steps: int | None, examples: int, *, instruments: bool = False) -> "TrainingRun":
        """Train on the first examples, and return the finished run."""
        from harness.run.experiment import load_experiment
        from harness.run.training import TrainingRun

        train = self.data.train
        part = dataclasses.replace(train, inputs=train.inputs[:examples], labels=train.labels[:examples])
        experiment = load_experiment(self._path, self._source)
        data, settings = dataclasses.replace(self.data, train=part), self.settings
        if steps is not None:
            settings = dataclasses.replace(settings, max_steps=steps)
        return TrainingRun(experiment, data, settings, folder, None, instruments=instruments).run(resume=False)

    def find_symptoms(self, folder: Path) -> set[str]:
        """Return the symptoms that the log in a folder shows, in words."""
        from harness.run.metrics_log import read_metrics_log
        from harness.run.symptoms import judge_symptom

        records = read_metrics_log(folder / METRICS_LOG)
        return {symptom.says for symptom in self._symptoms if judge_symptom(records, symptom).present}

    def find_smallest(self, scratch: Path) -> dict[str, Any]:
        """Return steps and examples of the whole run and of the smallest run, and the symptoms of both."""
        most = len(self.data.train.inputs)
        whole = self.train(scratch, None, most)
        wanted = self.find_symptoms(scratch)
        if not wanted:
            raise UserError("The log of experiment.py shows no symptom any more, so there is nothing to reproduce.")

        self.train(scratch, 1, most)
        # After a single step, also a sound network has a low accuracy. Such a symptom says nothing about fewer steps.
        needed = wanted - self.find_symptoms(scratch)

        def shows(steps: int, examples: int) -> bool:
            self._runs += 1
            self._reporter.send("progress", step=self._runs, steps=0, says=f"{steps} steps, {examples} examples")
            try:
                self.train(scratch, steps, examples)
            except UserError:  # for example because a batch is larger than the data
                return False
            return wanted <= self.find_symptoms(scratch)

        steps, examples = whole.position["step"], most
        if needed:
            steps = fewest(steps, lambda count: shows(count, most))
            while (half := examples // 2) >= whole.batch_size and shows(steps, half):
                examples = half
        return {
            "steps": steps,
            "examples": examples,
            "whole_steps": whole.position["step"],
            "whole_examples": most,
            "symptoms": sorted(wanted),
        }


def _write_smallest(job: dict[str, Any], reporter: Reporter) -> dict[str, Any]:
    """Find the smallest run, write its files into the folder of the job, and return its size."""
    from harness.canonical_setup import apply_numerics
    from harness.run.metrics_log import batch_records, read_metrics_log

    search = _Search(job, reporter)
    settings = search.settings
    apply_numerics(settings.numerics, settings.device)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        found = search.find_smallest(Path(scratch))
    folder = Path(job["folder"])
    search.train(folder, found["steps"], found["examples"], instruments=True)
    config = {
        **found,
        "seed": settings.seed,
        "dataset": settings.dataset,
        "classes": list(search.data.class_names),
        "constants": constants_of(settings),
        "losses": [repr(float(one["loss"])) for one in batch_records(read_metrics_log(folder / METRICS_LOG))],
        "environment": {**COMMON_VARIABLES, **portable_variables()},
        "machine": _describe_machine(),
    }
    for path in folder.iterdir():
        if path.name not in (METRICS_LOG, DETAILS_LOG, CHECKPOINT):
            path.unlink()
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    _write_data(folder / "data.npz", search.data, found["examples"])
    return found


def fewest(most: int, shows: Callable[[int], bool]) -> int:
    """Return the smallest number up to `most` for which `shows` is true, as if all larger numbers were true, too.

    `shows(most)` is known to be true. The search doubles a number until it is true, then halves the interval.
    """
    low, high = 0, 1
    while high < most and not shows(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def constants_of(settings: RunSettings) -> dict[str, int]:
    """Return the constants of an experiment that the settings of a workspace change."""
    given = {"EPOCHS": settings.epochs, "BATCH_SIZE": settings.batch_size}
    return {name: value for name, value in given.items() if value is not None}


def _write_data(path: Path, data: "TensorData", examples: int) -> None:
    import numpy as np

    train = data.train
    np.savez(
        path,
        train_inputs=train.inputs[:examples].numpy(),
        train_labels=train.labels[:examples].numpy(),
        validation_inputs=data.validation.inputs.numpy(),
        validation_labels=data.validation.labels.numpy(),
    )


def _describe_machine() -> dict[str, Any]:
    import torch

    from harness.run.provenance import git_commit, versions

    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cores": usable_cores(),
        "cuda": torch.version.cuda,
        "versions": versions(),
        "git_commit": git_commit(),
    }


def _work(line: str, reporter: Reporter) -> None:
    reporter.send("finished", result=_write_smallest(json.loads(line), reporter))


if __name__ == "__main__":
    sys.exit(serve(_work))
