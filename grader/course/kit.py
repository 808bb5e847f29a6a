"""`grader kit`: build the kit, an archive for students that contains broken experiments but no answers.

The plain kit contains all exercises. The kit of an assignment contains only the exercises of this assignment.
"""

import gzip
import hashlib
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from zlib import error as ZlibError

from grader.course.course import Assignment, Course
from grader.report.text import count_noun
from grader.sandbox import HIDDEN_FROM_STUDENTS
from harness.errors import UserError
from harness.files import write_with_sha256
from harness.recipes.cases import Case
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import (
    BEHAVIOUR,
    EXERCISES,
    FILE_EXERCISE,
    GOAL,
    ROOT,
    SOLUTIONS,
    Recipe,
    Triage,
    recipe_ids,
)
from harness.recipes.suite import PACKAGES, suite_files, suite_path
from harness.run.files import EXPERIMENT
from harness.student.check_commands import documentation
from harness.submission.archive import deterministic_tar_gz
from harness.submission.log_values import CAUSES, causes_file
from harness.workspace.workspace import PROMPT
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise
from harness.written.expected import EXPECTED

_HERE = Path(__file__).parent
TASKS = ".vscode/tasks.json"
STATIC = _HERE / "kit_files"
# Files that are the same in every kit: the path in the kit, and our name for the file. The names differ, so that no
# tool uses these files for this repository. Only an editor does: `.vscode/` has links to its two files.
_STATIC = {
    "Dockerfile": "Dockerfile",
    ".devcontainer/devcontainer.json": "devcontainer.json",
    ".github/workflows/check.yml": "check.yml",
    ".gitignore": "gitignore",
    TASKS: "tasks.json",
    ".vscode/launch.json": "launch.json",
}
LEGAL = ("LICENSE", "NOTICE")  # every copy of the suite must include these files
# The input for `sha256sum -c`. It lists all files of the kit except notebooks, because Jupyter changes notebooks.
LISTING = "kit.sha256"
# Pages that are not files of the repository, because functions generate them.
_MADE: Mapping[str, Callable[[], str]] = {"docs/checks.md": documentation}
_LIBRARY = "trainwreck"  # which watches scripts
_LONG_LINE = 40  # if a kit contains a line of a solution with more characters than this, it is no coincidence
_FOLDER = "trainwreck"  # the top folder in each tarball, wherever the tarball is built
# What the README of a kit says about `make triage`, for each setting of the assignment.
_TRIAGE: dict[Triage, str] = {
    "outcomes": "runs all checks on the experiment, and shows which checks fail and where to look",
    "figures": "runs all checks on the experiment, and shows the measured values; you decide what the values mean",
    "off": "",
}
_WRITTEN = "These exercises have no runs. Your answer is one file, which `PROMPT.md` of the exercise describes:"
# The parts of our Makefile and pyproject.toml that students do not get: everything from the first "# --- ", and each
# line that begins with "grader".
_NOT_FOR_STUDENTS = re.compile(r'\n# --- .*|^ *"?grader.*?\n', re.DOTALL | re.MULTILINE)


def build_kit(tarball: Path, files: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """Write the kit as a tarball, and its hash as a `.sha256` file. Return the content of each file of the kit.

    The keys of the result are paths. files: the files of the kit; by default the files of the plain kit. The bytes of
    the tarball depend only on these files. Raises `UserError` if the kit would reveal an answer, and `OSError` if the
    tarball cannot be written.
    """
    if tarball.exists() and not _is_kit(tarball):
        raise UserError(f"{tarball} exists and is not a kit: choose another name.")
    files = dict(kit_files() if files is None else files)
    listed = sorted(name for name in files if not name.endswith(".ipynb"))
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in listed]
    files[LISTING] = "".join(lines).encode()
    members = {f"{_FOLDER}/{name}": content for name, content in files.items()}
    write_with_sha256(tarball, deterministic_tar_gz(members))
    return files


def _is_kit(path: Path) -> bool:
    try:
        return LISTING in read_kit(path)
    except UserError:
        return False


def kit_files() -> dict[str, bytes]:
    """Return the content of every file of the plain kit, by path. Raises `UserError` if a file reveals an answer."""
    files = _files_of_every_kit(_readme("kit", {"case": "huge_lr"}))
    files["Makefile"] = _makefile(files["Makefile"].decode(), "huge_lr").encode()
    for recipe in map(load_recipe, recipe_ids()):
        own = {
            PROMPT: (EXERCISES / recipe.id / PROMPT).read_bytes(),
            "recipe.toml": recipe.for_kit().encode(),
            "experiment.py": recipe.broken_source().encode(),
        }
        measured = [name for name in (GOAL, BEHAVIOUR) if (EXERCISES / recipe.id / name).is_file()]
        own |= {name: (EXERCISES / recipe.id / name).read_bytes() for name in measured}
        _refuse_answers(recipe, own)
        files |= {f"exercises/{recipe.id}/{name}": content for name, content in own.items()}
    return files | _written_files(file_exercise_ids())


def _written_files(exercises: Iterable[str]) -> dict[str, bytes]:
    files = {}
    for exercise in map(load_exercise, exercises):
        assert isinstance(exercise, FileExercise)
        public = [EXPECTED] if (EXERCISES / exercise.id / EXPECTED).is_file() else []
        for name in (FILE_EXERCISE, PROMPT, exercise.file, *public):
            files[f"exercises/{exercise.id}/{name}"] = (EXERCISES / exercise.id / name).read_bytes()
    return files


def assignment_files(course: Course, assignment: Assignment) -> dict[str, bytes]:
    """Return the content of every file of an assignment's kit, by path.

    For each case, the kit has the broken experiment, a neutral title and prompt, and hints if the assignment gives
    hints. It has no `goal.toml`, because that file would reveal where to look. Raises `UserError` if a file reveals an
    answer.
    """
    cases = course.cases(assignment)
    first = assignment.exercises[0]
    asks_first = course.personal_seeds or any(one.pool for one in assignment.case)
    words = {
        "course": course.title,
        "title": assignment.title,
        "case": first,
        "cases": "\n".join(_listed_cases(assignment)) or "(none in this assignment)",
        "due": f"{assignment.due:%Y-%m-%d %H:%M} ({course.time_zone})",
        "login": "Replace `ada` with your login on the course's platform. Only your first command needs the login."
        + (" Your runs get a seed of your own, which depends on the login." if course.personal_seeds else "")
        if asks_first
        else "In `make submit`, replace `ada` with your login on the course's platform.",
        "run": ", and runs the experiment after your prediction" if assignment.predict else ", and runs the experiment",
        "written": f"\n{_WRITTEN}\n\n{_list_names(assignment.written)}\n" if assignment.written else "",
        "student": " STUDENT=ada" if asks_first else "",
        "submits": "" if asks_first else " STUDENT=ada",
        "predict": f"| `make predict BREAK={first}` | asks you to predict the result before the experiment runs |\n"
        if assignment.predict
        else "",
        "triage": f"| `make triage BREAK={first}` | {_TRIAGE[assignment.triage]} |\n"
        if _TRIAGE[assignment.triage]
        else "",
        "hint": f"\n- If you are stuck, run `make hint BREAK={first} LEVEL=1`. If that is not enough, use `LEVEL=2`,"
        " then `LEVEL=3`."
        if assignment.hints
        else "",
    }
    files = _files_of_every_kit(_readme("assignment", words))
    there = {"hint": assignment.hints, "triage": assignment.triage != "off", "predict": assignment.predict}
    missing = [verb for verb, is_there in there.items() if not is_there]
    files["Makefile"] = _makefile(files["Makefile"].decode(), first, missing).encode()
    files[TASKS] = _tasks(files[TASKS], missing)
    for case in cases:
        own = {
            PROMPT: suite_path("harness/workspace/templates/mystery.md").read_bytes(),
            "recipe.toml": case.for_kit(with_hints=assignment.hints).encode(),
            EXPERIMENT: case.broken_source().encode(),
        }
        files |= {f"exercises/{case.id}/{name}": content for name, content in own.items()}
    files |= _written_files(assignment.written)
    told = [
        f"  {name} contains {what}" for name, what in answers_in(files, cases, hints=assignment.hints) if _is_own(name)
    ]
    if told:
        raise UserError("\n".join(["The kit would reveal an answer:", *told]))
    return files


def _listed_cases(assignment: Assignment) -> Iterator[str]:
    """Yield lines for the README: one line for each single case, and one line for all cases of a pool."""
    for one in assignment.case:
        name, pool = one.id, assignment.pool_of(one.id)
        if not pool:
            yield f"- `{name}`"
        elif name == pool[0]:
            listed = ", ".join(f"`{one}`" for one in pool)
            command = f"make exercise BREAK={name} STUDENT=ada"
            yield f"- one of {listed}: `{command}` starts this case, or says which case is yours"


def _list_names(names: Iterable[str]) -> str:
    return "\n".join(f"- `{name}`" for name in names)


def _readme(kind: str, words: Mapping[str, str]) -> str:
    """Return the README for a kit. `words` contains the texts that replace the names in braces.

    kind: "kit" for the plain kit, or "assignment".
    """
    text = "\n".join((_HERE / f"{name}_readme.md").read_text(encoding="utf-8") for name in (kind, "shared"))
    return re.sub(r"\{(\w+)\}", lambda match: words[match[1]], text)


def _makefile(text: str, case: str, missing: Iterable[str] = ()) -> str:
    """Return the Makefile for a kit. Its examples name `case`, and its help lists only commands that the kit has."""
    words = "|".join(["mystery", "case-", "next LEVEL=", *(f"make {verb} " for verb in ("reveal", *missing))])
    text = re.sub(rf"^#: .*({words}).*\n", "", text, flags=re.MULTILINE)

    def example(match: re.Match[str]) -> str:
        return f"BREAK={case}{match[1]}".ljust(len(match[0]) - 2) + "  "

    return re.sub(r"BREAK=huge_lr((?: \S+)*)  +", example, text).replace("BREAK=huge_lr", f"BREAK={case}")


def _tasks(text: bytes, missing: Iterable[str]) -> bytes:
    """Return the tasks for VS Code without the commands that the kit does not have."""
    table = json.loads(text)
    table["tasks"] = [task for task in table["tasks"] if task["command"].split()[1] not in {*missing}]
    return (json.dumps(table, indent=2) + "\n").encode()


def _files_of_every_kit(readme: str) -> dict[str, bytes]:
    """Return the files of every kit: harness, library, project and container files, this README, and its linked pages.

    A suite that was installed from a wheel does not have the library.
    """
    files = {
        name: path.read_bytes()
        for folder in ("harness", _LIBRARY)
        for name, path in suite_files(folder)
        if not name.removeprefix("harness/").startswith(HIDDEN_FROM_STUDENTS)
    }
    files |= {name: (STATIC / source).read_bytes() for name, source in _STATIC.items()}
    files["README.md"] = readme.encode()
    for page in re.findall(r"\]\((docs/[\w.-]+)\)", readme):
        files[page] = _MADE[page]().encode() if page in _MADE else (ROOT / page).read_bytes()
        for picture in re.findall(r"!\[.*?\]\(([\w/-]+\.svg)\)", files[page].decode()):
            files[f"docs/{picture}"] = (ROOT / "docs" / picture).read_bytes()
    files |= {name: (ROOT / name).read_bytes() for name in LEGAL}
    for name in ("Makefile", "pyproject.toml"):
        files[name] = _NOT_FOR_STUDENTS.sub("", (ROOT / name).read_text(encoding="utf-8")).encode()
    files["pyproject.toml"] = files["pyproject.toml"].replace(b'"harness*",', b'"harness*",\n    "trainwreck*",')
    files[CAUSES.relative_to(PACKAGES).as_posix()] = causes_file()
    return files


def _refuse_answers(recipe: Recipe, files: Mapping[str, bytes]) -> None:
    """Raise `UserError` if a file of an exercise shows the edit that broke the experiment.

    The broken experiment may contain the text after the edit, but not the text before it.
    """
    for edit in recipe.breaks:
        for name, content in files.items():
            texts = [edit.find.strip(), edit.replace.strip()]
            if name == "experiment.py":  # must contain the broken text, but not the healthy text
                texts = [] if edit.find in edit.replace else [edit.find]
            for text in filter(None, texts):
                if text in content.decode():
                    raise UserError(f"The kit would reveal an answer: {name} of {recipe.id} contains {text!r}.")


def answers_in(files: Mapping[str, bytes], cases: Sequence[Case], *, hints: bool) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that contains an answer to one of these cases, and a description of the answer.

    An answer is the text before or after the edit that broke the experiment, the cause, a line of a solution, or a hint
    if the assignment gives no hints. In files that are made for the assignment, the name of a break is also an answer.
    The experiment of a case may contain the text after the edit, but not the text before it.
    """
    for name, content in files.items():
        written = content.decode("utf-8", "replace")
        text = " ".join(written.split())
        for case in cases:
            if name == f"exercises/{case.id}/{EXPERIMENT}":
                # Compare the texts including spaces, because a break may change only the indentation.
                for edit in case.breaks:
                    if edit.find in written and edit.find not in edit.replace:
                        yield name, f"the healthy text of {case.id}: {edit.find!r}"
                continue
            if name.endswith(f"/{EXPERIMENT}"):
                continue  # `grader course check` warns if two cases use the same experiment
            texts = _answers(case, hints=hints)
            texts |= dict.fromkeys(case.parts, "the name of the break") if _is_own(name) else {}
            for answer, what in texts.items():
                if (short := " ".join(answer.split())) and short in text:
                    yield name, f"{what} of {case.id}: {short!r}"


def _answers(case: Case, *, hints: bool) -> dict[str, str]:
    edits = (text for edit in case.breaks for text in (edit.find, edit.replace))
    # Do not search for single words and numbers, because they occur in many files.
    texts = {text: "an edit" for text in edits if not re.fullmatch(r"[\w.]*", text.strip())}
    texts |= dict.fromkeys(() if hints else case.hints, "a hint")
    for part in map(load_recipe, case.parts):
        texts |= {part.cause: "the cause"} | dict.fromkeys(() if hints else part.hints, "a hint")
        for path in sorted((SOLUTIONS / part.id).glob("*.*")):
            lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
            texts |= {line: "a line of the solution" for line in lines if len(line) > _LONG_LINE}
    return texts


def _is_own(name: str) -> bool:
    """Return whether a file was made for the assignment of this kit. The other files are the same in every kit."""
    is_written = name.startswith(tuple(f"exercises/{one}/" for one in file_exercise_ids()))
    return (name.startswith("exercises/") and not is_written) or "/" not in name


def read_kit(tarball: Path) -> dict[str, bytes]:
    """Return the content of each file of a kit, by its path in the kit. Raises `UserError` if it is no tarball."""
    try:
        with tarfile.open(tarball) as tar:
            members = {item.name: tar.extractfile(item) for item in tar if item.isfile()}
            return {name.removeprefix(f"{_FOLDER}/"): file.read() for name, file in members.items() if file is not None}
    except FileNotFoundError:
        raise UserError(f"There is no {tarball}: give the archive that grader kit wrote.") from None
    except (tarfile.TarError, EOFError, ZlibError, gzip.BadGzipFile):
        raise UserError(f"{tarball} is not an archive of grader kit: build it again.") from None


def inspect_kit(tarball: Path, course: Course, assignment: Assignment) -> tuple[list[str], bool]:
    """Search a kit for answers. Return lines that list its files and the answers, and whether there is an answer."""
    files = read_kit(tarball)
    lines = [f"{len(content):>9,}  {name}" for name, content in sorted(files.items())]
    found = list(answers_in(files, course.cases(assignment), hints=assignment.hints))
    own = [f"REVEALED: {name} contains {what}" for name, what in found if _is_own(name)]
    ids = {f"exercises/{name}" for name in assignment.exercises}
    strangers = sorted({"/".join(name.split("/")[:2]) for name in files if name.startswith("exercises/")} - ids)
    own += [f"REVEALED: {name} does not belong to {assignment.id}" for name in strangers]
    every = [f"in every kit: {name} contains {what}" for name, what in found if not _is_own(name)]
    return [*lines, describe_kit(files), *every, *own], bool(own)


def describe_kit(files: Mapping[str, bytes]) -> str:
    """Return the line that `grader kit` prints: the number and the size of the files, and the ids of the exercises."""
    exercises = sorted({name.split("/")[1] for name in files if name.startswith("exercises/")})
    size = sum(map(len, files.values())) / 1e6
    return f"{len(files)} files, {size:.1f} MB, {count_noun(len(exercises), 'exercise')}: {', '.join(exercises)}"
