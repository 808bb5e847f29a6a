"""What the commands do: make a workspace, run the broken and the edited experiment, check before handing in."""

import dataclasses
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cases import is_case
from harness.data import DATASETS
from harness.errors import Stopped, UserError, naming, printable
from harness.files import write_whole
from harness.progress import note_student, noted_student, progress_of
from harness.recipe import Recipe, experiment_source, load_recipe, load_recipes, suggestion
from harness.run.launch import launch
from harness.run.metrics_log import read_metrics_log
from harness.run.provenance import harness_hash
from harness.run.settings import RunJob, RunName, RunSettings
from harness.workspace import (
    CHECKED,
    CHECKPOINT,
    EXPERIMENT,
    META,
    METRICS_LOG,
    RESULT,
    RUNS,
    SETTINGS,
    Workspace,
    create_workspace,
    open_workspace,
    read_source,
)

if TYPE_CHECKING:  # reading reports and making checks take libraries that no run needs
    from harness.attempts import Attempt
    from harness.submission.check_run import CheckItem

DEFAULT_SEED = 42
DEFAULT_EXPERIMENT = "digits_mlp"


@dataclass(frozen=True)
class RunOptions:
    """The options of a command line; None means: as the recipe has it."""

    seed: int | None = None
    dataset: str | None = None
    device: str | None = None
    epochs: int | None = None
    batch_size: int | None = None

    def settings(self, recipe: Recipe, default: RunSettings | None = None) -> RunSettings:
        """Return `default`, or the recipe's own settings, with these options on top."""
        default = default or RunSettings(seed=recipe.seed, dataset=recipe.dataset)
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        settings = dataclasses.replace(default, **given)
        check_dataset(settings.dataset, recipe.dataset)
        return settings


def check_dataset(name: str, default: str) -> None:
    """Raise `UserError` unless the data set has the form of `default`."""
    if name not in DATASETS:
        raise UserError(f"There is no data set {name!r}: {suggestion(name, list(DATASETS))}")
    if DATASETS[name] != DATASETS[default]:
        fitting = [other for other, form in DATASETS.items() if form == DATASETS[default]]
        raise UserError(f"This experiment reads {DATASETS[default]}, unlike {name}: choose from {', '.join(fitting)}.")


def start_exercise(
    recipe_id: str,
    work: Path,
    options: RunOptions,
    *,
    student: str | None = None,
    resume: bool = False,
    bar: bool = True,
) -> tuple[Workspace, bool]:
    """Make the workspace and the broken run unless they exist; return it and whether a run was made.

    Where the course asks for a prediction first, no run is made before it. After one, the run is made with half the
    learning rate, too. Raises as `make_workspace` does.
    """
    workspace, recipe = make_workspace(recipe_id, work, options, student=student)
    prediction = progress_of(workspace.folder).prediction
    if workspace.has_run("broken") or (recipe.predict and prediction is None):
        return workspace, False
    launch(workspace_job(workspace, recipe, "broken", recipe.broken_source(), resume=resume), bar=bar)
    if prediction is not None:
        from harness.prediction import half_rate_folder, with_half_rate

        source, place = with_half_rate(recipe.broken_source()), half_rate_folder(workspace)
        launch(workspace_job(workspace, recipe, "broken", source, folder=place), bar=bar)
    return workspace, True


def make_workspace(
    recipe_id: str, work: Path, options: RunOptions, *, student: str | None = None
) -> tuple[Workspace, Recipe]:
    """Make the workspace unless it exists; return it and its recipe.

    student: the login, which is kept for the exercises that follow and for handing in. Raises `UserError` if seed or
    case depend on the student and no login is known, or if the student's case is another one.
    """
    recipe = load_recipe(recipe_id)
    folder = work / recipe_id
    if student is not None:
        from harness.submission.archive import student_name

        student = student_name(student)
    if recipe.personal_seeds or recipe.pool:
        owner = _owner(recipe, student or noted_student(work))
        if recipe.personal_seeds:
            options = dataclasses.replace(options, seed=_own_seed(recipe, options, owner))
    with naming(folder):
        if (folder / "runs" / "broken" / RESULT).is_file():
            workspace = _open_with_options(recipe, work, options)
        else:
            settings = options.settings(recipe)
            # Only a finished broken run ties a workspace to its settings: a run that could not be made (no such
            # card, data not fetched) must not prevent one with other settings.
            (folder / SETTINGS).unlink(missing_ok=True)
            workspace = create_workspace(work, recipe_id, recipe.broken_source(), settings)
        if student is not None:
            note_student(work, student)
    return workspace, recipe


def _owner(recipe: Recipe, student: str | None) -> str:
    """Return the student. Raises `UserError` if none is known, or for the case of another student."""
    if student is None:
        why = "is one of several cases, of which each student gets one"
        if recipe.personal_seeds:
            why = "has a seed of its own for each student"
        raise UserError(
            f"{recipe.id} {why}: give your login on the platform of the course once, as in make exercise"
            f" BREAK={recipe.id} STUDENT=ada (--student ada)."
        )
    _require_own_case(recipe, student)
    return student


def _require_own_case(recipe: Recipe, student: str) -> None:
    if (own := recipe.case_of(student)) != recipe.id:
        raise UserError(
            f"Each student gets one of the cases {', '.join(recipe.pool)}. {printable(student)} gets {own}: make"
            f" exercise BREAK={own}"
        )


def _own_seed(recipe: Recipe, options: RunOptions, student: str) -> int:
    if options.seed is not None:
        raise UserError(f"{recipe.id} has a seed of its own for each student: leave SEED= (--seed) out.")
    return recipe.seed_of(student)


def check_seed(workspace: Workspace, student: str) -> None:
    """Raise `UserError` if the case or the seed of a workspace's runs belong to another student than this one."""
    recipe = load_recipe(workspace.recipe)
    _require_own_case(recipe, student)
    if recipe.personal_seeds and workspace.settings.seed != recipe.seed_of(student):
        name = printable(student)
        raise UserError(
            f"The runs in {workspace.folder} do not have the seed of {name}. Hand them in under the login with which"
            f" you made them, or start over: {workspace.command('clean-work')}, then"
            f" {workspace.command('exercise', f' STUDENT={name}')}."
        )


def _open_with_options(recipe: Recipe, work: Path, options: RunOptions) -> Workspace:
    """Return the workspace. Raises `UserError` for options that differ from what it was made with."""
    workspace = open_workspace(work, recipe.id)
    workspace.require(options.settings(recipe, workspace.settings))
    return workspace


def verify_exercise(
    recipe_id: str, work: Path, options: RunOptions, *, resume: bool = False, bar: bool = True
) -> Workspace:
    """Run the student's experiment into `runs/fixed/`."""
    recipe = load_recipe(recipe_id)
    workspace = _open_with_options(recipe, work, options)
    if not workspace.has_run("broken"):
        raise UserError(
            f"{workspace.folder} has no finished broken run to compare with: {workspace.command('exercise')} makes it."
        )
    source = read_source(workspace.experiment)
    launch(workspace_job(workspace, recipe, "fixed", source, resume=resume), bar=bar)
    return workspace


def judge_attempt(workspace: Workspace) -> "Attempt | None":
    """Judge the fixed run, and keep it as an attempt; None if the experiment was not edited.

    Raises `UserError` if the checks cannot be made on it.
    """
    if not workspace.edited():
        return None
    from harness.attempts import keep_attempt
    from harness.goal import OnThisMachine, judge

    recipe, fixed = load_recipe(workspace.recipe), workspace.run_folder("fixed")
    records = read_metrics_log(fixed / METRICS_LOG)
    before, after = (workspace.run_folder(run) / METRICS_LOG for run in RUNS)
    if is_case(recipe.id) and before.read_bytes() == after.read_bytes():
        return keep_attempt(workspace, [])  # any verdict would tell whether something is broken
    examined = OnThisMachine(recipe, workspace.settings, read_source(fixed / EXPERIMENT))
    return keep_attempt(workspace, judge(recipe, workspace.settings, records, examined))


def workspace_job(
    workspace: Workspace, recipe: Recipe, run: RunName, source: str, *, resume: bool = False, folder: Path | None = None
) -> RunJob:
    """Return the job of one run of a workspace, into its own place or into `folder`."""
    fixed = run == "fixed"
    return RunJob(
        settings=workspace.settings,
        recipe=recipe.id,
        experiment=recipe.experiment,
        title=recipe.title,
        run=run,
        source=source,
        folder=str((folder or workspace.run_folder(run)).resolve()),
        source_path=str(workspace.experiment.resolve()) if fixed else None,
        resume=resume,
        compare_with=str(workspace.run_folder("broken").resolve()) if fixed else None,
    )


def single_run_job(
    break_id: str,
    settings: RunSettings,
    folder: Path,
    *,
    experiment: str | None = None,
    script: Path | None = None,
    resume: bool = False,
) -> RunJob:
    """Return the job of a run outside any workspace: of a script, a recipe or, for `none`, a healthy experiment."""
    run: RunName = "healthy"
    if break_id == "none":
        name, title = experiment or DEFAULT_EXPERIMENT, "Healthy run"
        source = experiment_source(name)
    else:
        recipe = load_recipe(break_id)
        if experiment not in (None, recipe.experiment):
            raise UserError(f"{break_id} breaks {recipe.experiment}, not {experiment}: leave --experiment out.")
        name, title, source, run = recipe.experiment, recipe.title, recipe.broken_source(), "broken"
    job = RunJob(settings, break_id, name, title, run, source, str(folder.resolve()), resume=resume)
    if script is None:
        return job
    return dataclasses.replace(job, run="fixed", source=read_source(script), source_path=str(script.resolve()))


def default_dataset(break_id: str, experiment: str | None) -> str:
    """Return the data set of a recipe or a healthy experiment."""
    if break_id != "none":
        return load_recipe(break_id).dataset
    datasets = {recipe.experiment: recipe.dataset for recipe in load_recipes()[0]}
    return datasets.get(experiment or DEFAULT_EXPERIMENT, "digits")


def check_exercise(recipe_id: str, work: Path) -> "tuple[Workspace, list[CheckItem]]":
    """Check everything that can be checked before handing in; this makes both runs again to see that they repeat.

    What an earlier call has found is not computed again as long as nothing changes that it rests on.
    """
    from harness import checks
    from harness.submission.check import check_workspace

    recipe = load_recipe(recipe_id)
    workspace = open_workspace(work, recipe_id)
    known = _Found(workspace)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:

        def rerun(run: RunName) -> Path:
            if known.repeats(run):
                return workspace.run_folder(run)
            folder = Path(scratch) / run
            source = read_source(workspace.run_folder(run) / EXPERIMENT)
            try:
                launch(workspace_job(workspace, recipe, run, source, folder=folder), resumable=False)
            except Stopped:
                raise Stopped(f"Stopped in the {run} run: give the same command again.") from None
            return folder

        def outcomes(names: Sequence[str]) -> Mapping[str, str]:
            missing = [name for name in names if name not in known.outcomes]
            if missing:
                findings = checks.run_checks(workspace.broken_source(), workspace.settings, missing)
                known.outcomes |= {name: finding.outcome for name, finding in findings.items()}
            return {name: known.outcomes[name] for name in names}

        items = [*check_workspace(workspace, rerun, outcomes), *_goal_items(workspace)]
    known.save([run for run in RUNS if any(one.id == f"{run}: repeats" and one.outcome == "passed" for one in items)])
    return workspace, items


def _goal_items(workspace: Workspace) -> "Iterator[CheckItem]":
    """Yield whether the last attempt is fixed, if the experiment was edited and verified since."""
    from harness.attempts import list_attempts
    from harness.submission.check_run import failed, passed

    made = list_attempts(workspace)
    if not made or not workspace.edited() or made[-1].source() != read_source(workspace.experiment):
        return
    missed = [item for item in made[-1].criteria if not item.reached]
    if missed:
        yield failed("fixed: goal", f"not fixed yet: {missed[0].short}.")
    elif made[-1].criteria:
        yield passed("fixed: goal", "no symptom, a healthy validation, and sound checks.")


class _Found:
    """What `harness check` has found of a workspace, in its `checked.json`.

    It holds for the bytes of the runs, the harness and the libraries with which it was found.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._path = workspace.folder / CHECKED
        try:
            record = json.loads(self._path.read_bytes())
            self._runs, found = dict(record["runs"]), dict(record["outcomes"])
        except (OSError, ValueError, KeyError, TypeError):
            self._runs, found = {}, {}
        # The checks are made of the broken experiment, whose run was made of it.
        self.outcomes: dict[str, str] = dict(found.get(self._key("broken"), {}))

    def repeats(self, run: RunName) -> bool:
        """Return whether this run was made again with the bytes that it has now."""
        return self._runs.get(run) == self._key(run)

    def save(self, repeated: Sequence[RunName]) -> None:
        """Keep the outcomes, and which runs repeat."""
        record = {
            "format_version": 1,
            "runs": {run: self._key(run) for run in repeated},
            "outcomes": {self._key("broken"): self.outcomes},
        }
        write_whole({self._path: (json.dumps(record, indent=1) + "\n").encode()}, durable=False)

    def _key(self, run: RunName) -> str:
        total = hashlib.sha256(f"{harness_hash()} {version('torch')} {version('numpy')} {sys.version}".encode())
        for name in (EXPERIMENT, METRICS_LOG, CHECKPOINT, META):
            path = self._workspace.run_folder(run) / name
            total.update(path.read_bytes() if path.is_file() else b"")
        return total.hexdigest()
