"""Make, open and remove a workspace, which is a student's folder for one exercise."""

import dataclasses
import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from harness.errors import UserError
from harness.files import write_whole
from harness.formats.toml_file import read_table
from harness.recipes.catalogue import SUITE, Catalogue
from harness.recipes.form import is_script
from harness.recipes.recipe import EXERCISES, Recipe
from harness.recipes.suite import IS_WHEEL, PACKAGES, as_typed
from harness.run.files import CHECKPOINT, CHECKSUM, EXPERIMENT, INPUT_SHEET, META, METRICS_LOG, RESULT, RUN_PAGE
from harness.run.settings import RunSettings
from harness.workspace.progress import progress_of

REPORT = "report.md"
SETTINGS = "workspace.json"
INTERVIEW = "interview.json"  # the state of an interview, whose folder lies beside the workspaces
PROMPT = "PROMPT.md"
WORK = Path("work")  # the default folder of workspaces
HISTORY_PAGE = "history.html"
CHECKED = "checked.json"  # the cached results of `make check`
SCORE = "score"  # the pages that `make score` writes
Run = Literal["broken", "fixed"]
DATA, TRACK = "data", "track.py"  # what a script needs to run alone
RUNS: tuple[Run, ...] = ("broken", "fixed")
# The files of each run that a submission contains; it does not contain `best.pt`.
RUN_FILES = (METRICS_LOG, CHECKPOINT, CHECKSUM, META, RESULT, INPUT_SHEET, EXPERIMENT, RUN_PAGE)
_NEEDED_OF_A_RUN = (RESULT, METRICS_LOG, CHECKPOINT, META, EXPERIMENT)
# The harness writes these files into a workspace, and clean-work deletes them. All other files belong to the student.
_MADE_BY_HARNESS = ("runs", SCORE, CHECKED, HISTORY_PAGE, SETTINGS, PROMPT, DATA, TRACK)
State = Literal["not started", "begun", "tried", "solved", "handed in"]


_TEMPLATES = Path(__file__).parent / "templates"
# The sentence about hints in `steps.md`, which is removed if the course gives no hints.
_HINT_STEP = re.compile(r"^ *Stuck\? .*\n", re.MULTILINE)
_READ_STEP = """\
Open `runs/broken/run.html` in a browser, then read `experiment.py` from `load_data` to `evaluate`. The trainer calls
   `model.train()` before the steps of each epoch; `evaluate` has to call `model.eval()` itself. The file only defines
   functions, so `python experiment.py` prints nothing: step 3 runs it."""
_READ_SCRIPT_STEP = """\
Open `runs/broken/run.html` in a browser, then read `experiment.py`. It is an ordinary training script, with its own
   loop. Its data is in `data/`, so `python experiment.py` also runs it alone; `--evaluate` evaluates its checkpoint.
   The harness records the run that counts: a value with `step` belongs to an update, and a value with `epoch` to the
   first, second ... validation."""
_TRIAGE_STEP = {
    "outcomes": (
        "`make triage BREAK={exercise}{work}` runs nearly all checks and says where to look."
        " `.venv/bin/harness checks` lists all checks, and `.venv/bin/harness overfit --help` explains the check"
        " `overfit`."
    ),
    "figures": (
        "`make triage BREAK={exercise}{work}` shows what nearly all checks measure. You decide what the values mean."
        " `.venv/bin/harness checks` lists all checks, and `.venv/bin/harness overfit --help` explains the check"
        " `overfit`."
    ),
    "off": (
        "Your course has switched off the checks for this case. Print values from the log of the broken run:"
        " `.venv/bin/harness show {exercise} --step 2{option}`."
    ),
}


def report_template() -> str:
    """Return the empty report that `make exercise` puts into a workspace. Its comments say what to fill in."""
    return (_TEMPLATES / REPORT).read_text(encoding="utf-8")


def prompt_text(exercise: str, file: str = "", work: Path | None = None, *, script: bool = False) -> str:
    """Return the text of PROMPT.md: the story of the exercise, then the steps, which are the same for many exercises.

    file: the name of the answer file, for an exercise without runs. work: the folder of workspaces, by default `work`.
    script: whether the experiment is a script.
    """
    steps = (_TEMPLATES / ("file_steps.md" if file else "steps.md")).read_text(encoding="utf-8")
    place = "" if work is None else _place(work)[1]
    if not _has_hints(exercise):
        steps = _HINT_STEP.sub("", steps)
    steps = steps.replace("{triage}", _TRIAGE_STEP[_triage(exercise)])
    steps = steps.replace("{read}", _READ_SCRIPT_STEP if script else _READ_STEP)
    names = {"exercise": exercise, "file": file, "work": place, "option": place.replace("WORK=", "--work ")}
    for name, words in names.items():
        steps = steps.replace(f"{{{name}}}", words)
    return as_typed(story_text(exercise) + steps)


def story_text(exercise: str) -> str:
    """Return the first part of PROMPT.md, which describes the experiment and what is wrong with it."""
    own = EXERCISES / exercise / PROMPT
    return (own if own.is_file() else _TEMPLATES / "mystery.md").read_text(encoding="utf-8")


def _triage(exercise: str) -> str:
    path = EXERCISES / exercise / "recipe.toml"
    return str(read_table(path).get("triage", "outcomes")) if path.is_file() else "outcomes"


def _has_hints(exercise: str) -> bool:
    path = EXERCISES / exercise / "recipe.toml"
    return not path.is_file() or "hints" in read_table(path)


@dataclass(frozen=True)
class Workspace:
    """The folder `work/<recipe>/`. Nothing overwrites the student's `experiment.py` and `report.md`."""

    folder: Path
    recipe: str
    settings: RunSettings
    catalogue: Catalogue = SUITE

    @property
    def exercise(self) -> Recipe:
        """The recipe or case of this workspace. Raises `UserError` if its files are invalid."""
        return self.catalogue.find(self.recipe)

    @property
    def experiment(self) -> Path:
        """The file that the student edits."""
        return self.folder / EXPERIMENT

    @property
    def report(self) -> Path:
        """The student's report."""
        return self.folder / REPORT

    def run_folder(self, run: str) -> Path:
        """Return the folder of the finished run `broken` or `fixed`."""
        return self.folder / "runs" / run

    def command(self, verb: str, more: str = "") -> str:
        """Return the `make` command for this workspace.

        It includes the folder of workspaces if that is not the default.
        """
        return make_command(verb, self.folder, more)

    def restore(self) -> list[str]:
        """Write the experiment, the report and PROMPT.md again where they are missing.

        Return the names of the written files.
        """
        return write_missing(self.folder, _handout_files(self.folder, self.broken_source()))

    def has_run(self, run: str) -> bool:
        """Return whether the run `broken` or `fixed` is finished, and the files are there that commands need."""
        return all((self.run_folder(run) / name).is_file() for name in _NEEDED_OF_A_RUN)

    def require_run(self, run: str) -> None:
        """Raise `UserError` unless the run `broken` or `fixed` is finished and its files are there."""
        if not self.has_run(run):
            command = self.command("verify" if run == "fixed" else "exercise")
            folder = self.run_folder(run)
            lost = ", ".join(name for name in _NEEDED_OF_A_RUN if not (folder / name).is_file())
            why = f"{folder} has no {lost}" if (folder / RESULT).is_file() else f"There is no finished run in {folder}"
            raise UserError(f"{why}: {command} makes the run.")

    def require(self, asked: RunSettings) -> None:
        """Raise `UserError` if the workspace was made with other settings."""
        made = dataclasses.asdict(self.settings)
        differences = [
            f"{name} {made[name]} (but you asked for {value})"
            for name, value in dataclasses.asdict(asked).items()
            if made[name] != value
        ]
        if differences:
            raise UserError(
                f"{self.folder} was made with {', '.join(differences)}: use these settings, choose another folder"
                f" with WORK=, or start over with {self.command('clean-work')}."
            )

    def broken_source(self) -> str:
        """Return the original, broken experiment. Raises `UserError` as `read_source` does."""
        return read_source(self.run_folder("broken") / EXPERIMENT)

    def is_edited(self) -> bool:
        """Return whether the student has changed the experiment."""
        return read_source(self.experiment) != self.broken_source()

    def fixed_run_is_current(self) -> bool:
        """Return whether the fixed run exists and ran the current experiment."""
        if not self.has_run("fixed"):
            return False
        try:
            return read_source(self.run_folder("fixed") / EXPERIMENT) == read_source(self.experiment)
        except UserError:
            return False

    def state(self) -> State:
        """Return the state of the exercise: "tried" if the student ran an edit that is not known to be a fix.

        The states "solved" and "handed in" are final: they stay if the workspace changes.
        """
        progress = progress_of(self.folder)
        if progress.handed_in is not None:
            return "handed in"
        if progress.solved is not None:
            return "solved"
        if not self.has_run("broken"):
            return "not started"
        if not self.has_run("fixed"):
            return "begun"
        return "begun" if read_source(self.run_folder("fixed") / EXPERIMENT) == self.broken_source() else "tried"


def find_work() -> Path:
    """Return the folder of workspaces in which the user is, or else the path `work` in the current folder."""
    here = Path.cwd()
    if any(any(here.glob(f"*/{name}")) for name in (SETTINGS, INTERVIEW)):
        return Path()
    folders = (here, *here.parents)
    workspace = next((one for one in folders if (one / SETTINGS).is_file() or (one / INTERVIEW).is_file()), None)
    return WORK if workspace is None else Path(os.path.relpath(workspace.parent))


def make_command(verb: str, folder: Path, more: str = "") -> str:
    """Return the `make` command that runs `verb` for a workspace, as users type it in the current folder."""
    project, place = _place(folder.parent)
    return as_typed(f"make{project} {verb} BREAK={folder.name}{more}{place}")


def queue_command(verb: str, work: Path, more: str = "") -> str:
    """Return a `make` command that names no exercise, such as `make next`, as users type it in the current folder."""
    project, place = _place(work)
    return as_typed(f"make{project} {verb}{more}{place}")


def _place(work: Path) -> tuple[str, str]:
    """Return two arguments of `make`: for the project's folder, and for the folder of workspaces. A default is ""."""
    if work == WORK:
        return "", ""
    whole = work.resolve()
    if not Path.cwd().is_relative_to(whole):
        return "", f" WORK={shlex.quote(str(work))}"
    if IS_WHEEL:  # the command harness finds a folder of workspaces around the current folder
        return "", ""
    if not (whole.parent / "Makefile").is_file():
        return "", f" WORK={shlex.quote(str(whole))}"
    place = "" if whole.name == str(WORK) else f" WORK={shlex.quote(whole.name)}"
    return f" -C {shlex.quote(os.path.relpath(whole.parent))}", place


def make_folder(folder: Path) -> None:
    """Make the folder of a workspace. If the folder of workspaces is new, make git ignore it."""
    make_work(folder.parent)
    folder.mkdir(exist_ok=True)


def make_work(work: Path) -> None:
    """Make the folder of workspaces. If it is new, make git ignore it."""
    if not work.exists():
        work.mkdir(parents=True)
        write_where_missing(work / ".gitignore", "*\n")


def write_where_missing(path: Path, text: str) -> bool:
    """Write a file atomically unless its name exists, even as a broken link. Return whether the file was written."""
    if os.path.lexists(path):
        return False
    write_whole({path: text.encode()}, durable=False)
    return True


def write_missing(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Write each file that the folder lacks. Return the names of the written files."""
    return [name for name, text in texts.items() if write_where_missing(folder / name, text)]


def _handout_files(folder: Path, source: str) -> dict[str, str]:
    """Return {name: text} for the files that a student gets."""
    script = is_script(source)
    prompt = prompt_text(folder.name, work=folder.parent, script=script)
    files = {EXPERIMENT: source, REPORT: report_template(), PROMPT: prompt}
    return files | ({TRACK: (PACKAGES / "harness" / "scripts" / TRACK).read_text(encoding="utf-8")} if script else {})


def create_workspace(
    work: Path, recipe: str, source: str, settings: RunSettings, catalogue: Catalogue = SUITE
) -> Workspace:
    """Make or complete `work/<recipe>/`, but leave the student's own files unchanged.

    The settings are written last, so that after an interruption the next call completes the workspace. Raises
    `UserError` if the workspace was made with other settings, and `OSError` if it cannot be written.
    """
    folder = work / recipe
    make_folder(folder)
    write_missing(folder, _handout_files(folder, source))
    if is_script(source) and not os.path.lexists(folder / DATA):
        from harness.data.folder import load_folder  # pages read workspaces too, and numpy would slow them down

        load_folder(settings.dataset).write(folder / DATA)
    record = {"format_version": 1, "recipe": recipe, "settings": dataclasses.asdict(settings)}
    write_where_missing(folder / SETTINGS, json.dumps(record, indent=1) + "\n")
    workspace = open_workspace(work, recipe, catalogue)
    workspace.require(settings)
    return workspace


def open_workspace(work: Path, recipe: str, catalogue: Catalogue = SUITE) -> Workspace:
    """Return an existing workspace. Raises `UserError` if it does not exist or cannot be read."""
    path = work / recipe / SETTINGS
    again = make_command("exercise", path.parent)
    try:
        record = json.loads(path.read_bytes())
        if record["format_version"] != 1 or record["recipe"] != recipe:
            raise ValueError("the file contains the settings of another workspace")
        settings = RunSettings(**record["settings"])
        # `RunSettings(**...)` refuses unknown keys. pydantic then checks types and allowed values, strictly only if it
        # reads JSON.
        TypeAdapter(RunSettings).validate_json(json.dumps(record["settings"]), strict=True)
    except FileNotFoundError:
        raise UserError(f"There is no workspace {path.parent}: {again} makes it.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{path} does not contain the settings of {recipe}: start over with"
            f" {make_command('clean-work', path.parent)},"
            f" which keeps your own files, then {again}."
        ) from None
    return Workspace(path.parent, recipe, settings, catalogue)


def remove_workspace(work: Path, recipe: str) -> Path:
    """Move the student's own files into `work/.removed/<recipe>-<n>/`, delete all others, and return the new folder.

    Only files that the harness wrote are deleted: the runs, the settings and cached results.
    """
    folder = work / recipe
    if not folder.is_dir():
        raise UserError(f"There is no workspace {folder}, so nothing was removed.")
    kept = work / ".removed"
    number = 1
    while (kept / f"{recipe}-{number}").exists():
        number += 1
    target = kept / f"{recipe}-{number}"
    target.mkdir(parents=True)
    # Rename files within `work`, because a copy could be incomplete.
    for path in sorted(folder.iterdir()):
        if path.name not in _MADE_BY_HARNESS:
            path.rename(target / path.name)
    if folder.is_symlink():
        raise UserError(f"{folder} is a link. Your files are in {target}: remove the link and its target.")
    shutil.rmtree(folder)
    return target


def read_source(path: Path) -> str:
    """Return the text of an experiment file. Raises `UserError` if the file is missing or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = (path.parent / SETTINGS).is_file()
        again = f", or write the broken experiment again: {make_command('exercise', path.parent)}" if known else ""
        raise UserError(f"There is no {path}: put the file back{again}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
