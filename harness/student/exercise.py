"""Make a workspace, run the broken and the edited experiment, and check the work before it is handed in."""

import dataclasses
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import Stopped, UserError, name_place, printable
from harness.files import write_whole
from harness.recipes.catalogue import SUITE, Catalogue
from harness.recipes.recipe import HEALTHY, Recipe
from harness.run.files import CHECKPOINT, EXPERIMENT, META, METRICS_LOG, RESULT
from harness.run.metrics_log import read_metrics_log
from harness.run.options import RunOptions
from harness.run.provenance import harness_hash
from harness.run.settings import DEFAULT_POLICY, GuardrailPolicy, RunName
from harness.student.runs import launch, workspace_job
from harness.workspace.progress import (
    note_begin,
    note_explained,
    note_progress,
    note_solved,
    note_student,
    noted_student,
    progress_of,
)
from harness.workspace.workspace import (
    CHECKED,
    RUNS,
    SETTINGS,
    Workspace,
    create_workspace,
    open_workspace,
    read_source,
)

if TYPE_CHECKING:  # these modules import libraries that a run does not need
    from harness.student.attempts import Attempt
    from harness.student.goal import SayItem
    from harness.student.verdict_children import VerdictChildren
    from harness.submission.check_run import CheckItem


def start_exercise(
    recipe_id: str,
    work: Path,
    options: RunOptions,
    *,
    student: str | None = None,
    resume: bool = False,
    bar: bool = True,
    catalogue: Catalogue = SUITE,
    policy: GuardrailPolicy = DEFAULT_POLICY,
) -> tuple[Workspace, bool]:
    """Make the workspace and the broken run unless they exist.

    Return the workspace, and whether this call made the run. If the course asks for a prediction, make no run before
    the student has predicted. After a prediction, also make a second run with half the learning rate. Raises as
    `make_workspace` does.
    """
    workspace, recipe = make_workspace(recipe_id, work, options, student=student, catalogue=catalogue)
    prediction = progress_of(workspace.folder).prediction
    if workspace.has_run("broken") or (recipe.predict and prediction is None):
        return workspace, False
    job = workspace_job(workspace, recipe, "broken", recipe.broken_source(), resume=resume)
    launch(dataclasses.replace(job, guardrails=policy), bar=bar)
    if prediction is not None:
        from harness.student.prediction import half_rate_folder, with_half_rate

        source, place = with_half_rate(recipe.broken_source()), half_rate_folder(workspace)
        launch(workspace_job(workspace, recipe, "broken", source, folder=place), bar=bar)
    return workspace, True


def make_workspace(
    recipe_id: str, work: Path, options: RunOptions, *, student: str | None = None, catalogue: Catalogue = SUITE
) -> tuple[Workspace, Recipe]:
    """Make the workspace unless it exists. Return the workspace and its recipe.

    student: the student's login, which is stored for later commands. Raises `UserError` if the seed or the choice of
    the case depends on the student but no login is known, or if the course gives this case to other students.
    """
    recipe = catalogue.find(recipe_id)
    folder = work / recipe_id
    if student is not None:
        from harness.submission.archive import student_name

        student = student_name(student)
    if recipe.personal_seeds or recipe.pool:
        owner = _owner(recipe, student or noted_student(work))
        if recipe.personal_seeds:
            options = dataclasses.replace(options, seed=_own_seed(recipe, options, owner))
    with name_place(folder):
        if (folder / "runs" / "broken" / RESULT).is_file():
            workspace = _open_with_options(recipe, work, options, catalogue)
        else:
            settings = options.settings(recipe)
            # The settings of a workspace are final only when the broken run is finished. After a failed run (no GPU,
            # data not downloaded) the student can choose other settings.
            (folder / SETTINGS).unlink(missing_ok=True)
            workspace = create_workspace(work, recipe_id, recipe.broken_source(), settings, catalogue)
        if student is not None:
            note_student(work, student)
        note_begin(folder)
    return workspace, recipe


def _owner(recipe: Recipe, student: str | None) -> str:
    """Return the student's login.

    Raises `UserError` if it is None, or if the course gives this case to other students.
    """
    if student is None:
        why = "is one of several cases, and your login decides which case you get"
        if recipe.personal_seeds:
            why = "has a different seed for each student"
        raise UserError(
            f"{recipe.id} {why}. Give your login on the course platform once, for example make exercise"
            f" BREAK={recipe.id} STUDENT=ada (--student ada)."
        )
    _require_own_case(recipe, student)
    return student


def _require_own_case(recipe: Recipe, student: str) -> None:
    if (own := recipe.case_of(student)) != recipe.id:
        raise UserError(
            f"Each student gets one of the cases {', '.join(recipe.pool)}. The case for {printable(student)} is"
            f" {own}: make exercise BREAK={own}"
        )


def _own_seed(recipe: Recipe, options: RunOptions, student: str) -> int:
    if options.seed is not None:
        raise UserError(f"{recipe.id} has a different seed for each student: remove SEED= (--seed).")
    return recipe.seed_of(student)


def check_seed(workspace: Workspace, student: str) -> None:
    """Raise `UserError` if the case or the seed of a workspace belongs to another student."""
    recipe = workspace.exercise
    _require_own_case(recipe, student)
    if recipe.personal_seeds and workspace.settings.seed != recipe.seed_of(student):
        name = printable(student)
        raise UserError(
            f"The runs in {workspace.folder} do not have the seed that belongs to {name}. Hand in under the login"
            f" that you used for these runs, or start over: {workspace.command('clean-work')}, then"
            f" {workspace.command('exercise', f' STUDENT={name}')}."
        )


def _open_with_options(recipe: Recipe, work: Path, options: RunOptions, catalogue: Catalogue) -> Workspace:
    """Open the workspace. Raises `UserError` if an option differs from the settings of the workspace."""
    workspace = open_workspace(work, recipe.id, catalogue)
    workspace.require(options.settings(recipe, workspace.settings))
    return workspace


def verify_exercise(
    recipe_id: str,
    work: Path,
    options: RunOptions,
    *,
    resume: bool = False,
    bar: bool = True,
    catalogue: Catalogue = SUITE,
    policy: GuardrailPolicy = DEFAULT_POLICY,
    children: "VerdictChildren | None" = None,
) -> Workspace:
    """Run the student's experiment, store the run in `runs/fixed/`, and return the workspace.

    children: start these processes; the second one measures the behaviour of an edited experiment during the run, for
    `judge_attempt`.
    """
    recipe = catalogue.find(recipe_id)
    workspace = _open_with_options(recipe, work, options, catalogue)
    workspace.require_run("broken")
    source = read_source(workspace.experiment)
    job = workspace_job(workspace, recipe, "fixed", source, resume=resume)
    if children is not None and source != workspace.broken_source():
        children.start(workspace.settings.numerics, bar=bar)
        from harness.student.goal import OnThisMachine

        OnThisMachine(recipe, workspace.settings, source, children).begin()
    launch(dataclasses.replace(job, guardrails=policy), bar=bar, child=children.run if children else None)
    return workspace


def judge_attempt(
    workspace: Workspace, say: "SayItem" = lambda item: None, children: "VerdictChildren | None" = None
) -> "Attempt | None":
    """Judge the fixed run, store it as an attempt, and return the attempt, or None if the experiment was not edited.

    say: gets each criterion as soon as it is judged, as in `harness.student.goal.judge`. children: as in
    `verify_exercise`. Raises `UserError` if the checks cannot run on the experiment.
    """
    if not workspace.is_edited():
        return None
    from harness.student.attempts import keep_attempt
    from harness.student.goal import OnThisMachine, judge
    from harness.student.verdict_children import VerdictChildren

    recipe, fixed = workspace.exercise, workspace.run_folder("fixed")
    records = read_metrics_log(fixed / METRICS_LOG)
    before, after = (workspace.run_folder(run) / METRICS_LOG for run in RUNS)
    children = children or VerdictChildren()
    examined = OnThisMachine(recipe, workspace.settings, read_source(fixed / EXPERIMENT), children)
    if recipe.is_case and before.read_bytes() == after.read_bytes():
        # A verdict would reveal whether this case is broken at all. But a fault may leave the log as it is, and its fix
        # counts.
        criteria = [] if recipe.course is not None else judge(recipe, workspace.settings, records, examined)
        if recipe.is_healthy or not criteria or not all(item.reached for item in criteria):
            return keep_attempt(workspace, [])
        for item in criteria:
            say(item)
    else:
        criteria = judge(recipe, workspace.settings, records, examined, say)
    attempt = keep_attempt(workspace, criteria)
    if attempt.fixed and not recipe.is_healthy:  # a sound run needs a claim, not an edit
        note_solved(workspace.folder, recipe.causes, attempt.number)
    return attempt


def claim_healthy(workspace: Workspace) -> bool:
    """Judge the student's claim that nothing is broken in a hidden exercise, and return whether it is right.

    A right claim solves the exercise; a wrong one counts as an attempt. Raises `UserError` for another exercise, and if
    the broken run was not made.
    """
    from harness.student.attempts import list_attempts

    recipe = workspace.exercise
    if not recipe.is_case:
        raise UserError(f"{recipe.id} has a fault: remove --healthy (HEALTHY=1), which is for hidden exercises.")
    if recipe.course is not None:
        raise UserError(f"Your course judges {recipe.id}: name the cause {HEALTHY} in {workspace.report} instead.")
    workspace.require_run("broken")
    folder = workspace.folder
    if recipe.is_healthy:
        note_solved(folder, recipe.causes, len(list_attempts(workspace)) + 1)
    elif progress_of(folder).solved is None:
        note_progress(folder, wrong_claims=progress_of(folder).wrong_claims + 1)
    return recipe.is_healthy


def name_differing_checks(workspace: Workspace) -> "tuple[str, ...]":
    """Return the checks that differ in the last attempt at a hidden exercise, and store that the student asked.

    Raises `UserError` if no attempt has the current experiment, or if its checks were not run or do not differ.
    """
    from harness.student.attempts import list_attempts

    made = list_attempts(workspace)
    if not made or made[-1].source() != read_source(workspace.experiment):
        raise UserError(f"There is no verdict on the current {workspace.experiment}: run {workspace.command('verify')}")
    names = tuple(name for item in made[-1].criteria for name in item.checks)
    if not names:
        missed = any(not item.reached for item in made[-1].criteria)
        why = "the log already differs, so no check was run" if missed else "no check differs"
        raise UserError(
            f"In your last attempt at {workspace.recipe}, {why}: {workspace.command('triage')} runs the checks"
        )
    note_progress(workspace.folder, named_checks=True)
    return names


def check_exercise(recipe_id: str, work: Path) -> "tuple[Workspace, list[CheckItem]]":
    """Check a workspace before it is handed in. Return the workspace and the checked items.

    This makes both runs again and compares their bytes. If nothing changed since an earlier call, its results are
    reused.
    """
    from harness import checks
    from harness.submission.check import check_workspace

    workspace = open_workspace(work, recipe_id)
    recipe = workspace.exercise
    known = _CheckedBefore(workspace)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:

        def rerun(run: RunName) -> Path:
            if known.repeats(run):
                return workspace.run_folder(run)
            folder = Path(scratch) / run
            source = read_source(workspace.run_folder(run) / EXPERIMENT)
            try:
                launch(workspace_job(workspace, recipe, run, source, folder=folder), resumable=False)
            except Stopped:
                raise Stopped(f"Stopped while the {run} run was made again: run the same command again.") from None
            return folder

        def outcomes(names: Sequence[str]) -> Mapping[str, str]:
            missing = [name for name in names if name not in known.outcomes]
            if missing:
                findings = checks.run_checks(workspace.broken_source(), workspace.settings, missing)
                known.outcomes |= {name: finding.outcome for name, finding in findings.items()}
            return {name: known.outcomes[name] for name in names}

        items = [*check_workspace(workspace, rerun, outcomes), *_goal_items(workspace)]
    known.save([run for run in RUNS if any(one.id == f"{run}: repeats" and one.outcome == "passed" for one in items)])
    if all(one.outcome == "passed" for one in items):
        note_explained(workspace.folder)
    return workspace, items


def _goal_items(workspace: Workspace) -> "Iterator[CheckItem]":
    """Yield an item that says whether the last attempt is fixed, if that attempt has the current experiment."""
    from harness.student.attempts import list_attempts
    from harness.submission.check_run import failed_item, passed_item

    made = list_attempts(workspace)
    if not made or not workspace.is_edited() or made[-1].source() != read_source(workspace.experiment):
        return
    missed = [item for item in made[-1].criteria if not item.reached]
    if missed:
        yield failed_item("fixed: goal", f"not fixed yet: {missed[0].short}.")
    elif made[-1].criteria:
        yield passed_item(
            "fixed: goal",
            "the log shows no symptom, the validation metrics are healthy, and the checks find nothing wrong.",
        )


class _CheckedBefore:
    """The cached results of `harness check` for a workspace, which are stored in `checked.json`.

    A result is stored under a digest of the run, the harness and the libraries. If any of them changes, the result is
    no longer found.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._path = workspace.folder / CHECKED
        try:
            record = json.loads(self._path.read_bytes())
            self._runs, found = dict(record["runs"]), dict(record["outcomes"])
        except (OSError, ValueError, KeyError, TypeError):
            self._runs, found = {}, {}
        # The key includes the source of the broken experiment, which is what the checks measure.
        self.outcomes: dict[str, str] = dict(found.get(self._key("broken"), {}))

    def repeats(self, run: RunName) -> bool:
        """Return whether an earlier call made this run again and got the bytes that it has now."""
        return self._runs.get(run) == self._key(run)

    def save(self, repeated: Sequence[RunName]) -> None:
        """Store the outcomes, and the names of the runs that gave the same bytes again."""
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
