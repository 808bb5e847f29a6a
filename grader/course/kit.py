"""`grader kit`: build what students get, with broken experiments written out and no answer in it.

The plain kit holds the whole suite, that of an assignment its cases and nothing of any other exercise.
"""

import gzip
import hashlib
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
from harness.recipes.suite import PACKAGES, suite_path
from harness.run.files import EXPERIMENT
from harness.student.check_commands import documentation
from harness.submission.archive import deterministic_tar_gz
from harness.submission.log_values import CAUSES, causes_file
from harness.workspace.workspace import PROMPT
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

_HERE = Path(__file__).parent
STATIC = _HERE / "kit_files"
# Static files of every kit. Here they have other names, so that no tool takes them for this repository's own.
_STATIC = {
    "Dockerfile": "Dockerfile",
    ".devcontainer/devcontainer.json": "devcontainer.json",
    ".github/workflows/check.yml": "check.yml",
    ".gitignore": "gitignore",
}
LEGAL = ("LICENSE", "NOTICE")  # go with every copy
# For `sha256sum -c`: every file of the kit but notebooks, which Jupyter saves with their outputs.
LISTING = "kit.sha256"
# Pages that lie in no folder: they are made from the harness.
_MADE: Mapping[str, Callable[[], str]] = {"docs/checks.md": documentation}
_LONG_LINE = 40  # characters from which a line of a solution is not there by chance
_FOLDER = "trainwreck"  # in the tarball, so its bytes do not depend on where the kit is built
# What the README of a kit says of make triage.
_TRIAGE: dict[Triage, str] = {
    "outcomes": "makes the checks of the method, and shows what is not sound and where to look",
    "figures": "makes the checks of the method, and shows their figures; you decide what they mean",
    "off": "",
}
_WRITTEN = "Exercises without a run, whose answer is one file (their `PROMPT.md` says which):"
# What to cut from our Makefile and our pyproject.toml: all below a line, and the grader's own lines above it.
_NOT_FOR_STUDENTS = re.compile(r'\n# --- .*|^ *"?grader.*?\n', re.DOTALL | re.MULTILINE)


def build_kit(tarball: Path, files: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """Write the kit as a tarball with its `.sha256` beside it, and return its files by path.

    files: by default those of the whole suite. The bytes depend on them alone. Raises `UserError` if the kit would give
    an answer away, and `OSError` if it cannot be written.
    """
    if tarball.exists() and not _is_kit(tarball):
        raise UserError(f"{tarball} is no kit, and would be overwritten: choose another name.")
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
    """Return the content of every file of the kit, by its path. Raises `UserError` if one gives an answer away."""
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
        for name in (FILE_EXERCISE, PROMPT, exercise.file):
            files[f"exercises/{exercise.id}/{name}"] = (EXERCISES / exercise.id / name).read_bytes()
    return files


def assignment_files(course: Course, assignment: Assignment) -> dict[str, bytes]:
    """Return the content of every file of an assignment's kit, by its path.

    A case has its broken experiment, a neutral title and prompt, and hints if the assignment gives some; what counts as
    fixed would tell where to look. Raises `UserError` if a file gives an answer away.
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
        "login": "For `ada` write your login on the course's platform. You give it once."
        + (" Your runs have a seed of their own." if course.personal_seeds else "")
        if asks_first
        else "`make submit` needs your login on the course's platform: write it for `ada`.",
        "run": ", and its run once you have predicted it" if assignment.predict else " with its run",
        "written": f"\n{_WRITTEN}\n\n{_list_names(assignment.written)}\n" if assignment.written else "",
        "student": " STUDENT=ada" if asks_first else "",
        "submits": "" if asks_first else " STUDENT=ada",
        "predict": f"| `make predict BREAK={first}` | asks what the run will do, before it is made |\n"
        if assignment.predict
        else "",
        "triage": f"| `make triage BREAK={first}` | {_TRIAGE[assignment.triage]} |\n"
        if _TRIAGE[assignment.triage]
        else "",
        "hint": f"\n- Stuck? `make hint BREAK={first} LEVEL=1`, then 2 and 3." if assignment.hints else "",
    }
    files = _files_of_every_kit(_readme("assignment", words))
    there = {"hint": assignment.hints, "triage": assignment.triage != "off", "predict": assignment.predict}
    missing = [verb for verb, is_there in there.items() if not is_there]
    files["Makefile"] = _makefile(files["Makefile"].decode(), first, missing).encode()
    for case in cases:
        own = {
            PROMPT: suite_path("harness/workspace/templates/mystery.md").read_bytes(),
            "recipe.toml": case.for_kit(with_hints=assignment.hints).encode(),
            EXPERIMENT: case.broken_source().encode(),
        }
        files |= {f"exercises/{case.id}/{name}": content for name, content in own.items()}
    files |= _written_files(assignment.written)
    told = [
        f"  {name} holds {what}" for name, what in answers_in(files, cases, hints=assignment.hints) if _is_own(name)
    ]
    if told:
        raise UserError("\n".join(["The kit would give an answer away:", *told]))
    return files


def _listed_cases(assignment: Assignment) -> Iterator[str]:
    """Yield a line for each case, and one for all cases of a pool."""
    for one in assignment.case:
        name, pool = one.id, assignment.pool_of(one.id)
        if not pool:
            yield f"- `{name}`"
        elif name == pool[0]:
            listed = ", ".join(f"`{one}`" for one in pool)
            yield f"- one of {listed}: `make exercise BREAK={name} STUDENT=ada` starts it, or says which one is yours"


def _list_names(names: Iterable[str]) -> str:
    return "\n".join(f"- `{name}`" for name in names)


def _readme(kind: str, words: Mapping[str, str]) -> str:
    """Return the README of a kind of kit, with what both kinds share; `words` take the place of names in braces."""
    text = "\n".join((_HERE / f"{name}_readme.md").read_text(encoding="utf-8") for name in (kind, "shared"))
    return re.sub(r"\{(\w+)\}", lambda match: words[match[1]], text)


def _makefile(text: str, case: str, missing: Iterable[str] = ()) -> str:
    """Return our Makefile with a case in its examples, without the commands that no kit has, and these."""
    words = "|".join(["mystery", *(f"make {verb} " for verb in ("reveal", *missing))])
    text = re.sub(rf"^#: .*({words}).*\n", "", text, flags=re.MULTILINE)

    def example(match: re.Match[str]) -> str:
        return f"BREAK={case}{match[1]}".ljust(len(match[0]) - 2) + "  "

    return re.sub(r"BREAK=huge_lr((?: \S+)*)  +", example, text).replace("BREAK=huge_lr", f"BREAK={case}")


def _files_of_every_kit(readme: str) -> dict[str, bytes]:
    """Return the harness, the project, this README, the pages that it names, and what containers and GitHub need."""
    harness = suite_path("harness")
    files = {
        path.relative_to(PACKAGES).as_posix(): path.read_bytes()
        for path in sorted(harness.rglob("[!.]*"))
        if path.is_file() and path.parent.name != "__pycache__"
        if not path.relative_to(harness).as_posix().startswith(HIDDEN_FROM_STUDENTS)
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
    files[CAUSES.relative_to(PACKAGES).as_posix()] = causes_file()
    return files


def _refuse_answers(recipe: Recipe, files: Mapping[str, bytes]) -> None:
    """Raise `UserError` if an exercise's own files hold its break, or its experiment the healthy text."""
    for edit in recipe.breaks:
        for name, content in files.items():
            texts = [edit.find.strip(), edit.replace.strip()]
            if name == "experiment.py":  # it holds the break; is the healthy text gone?
                texts = [] if edit.find in edit.replace else [edit.find]
            for text in filter(None, texts):
                if text in content.decode():
                    raise UserError(f"The kit would give an answer away: {name} of {recipe.id} holds {text!r}.")


def answers_in(files: Mapping[str, bytes], cases: Sequence[Case], *, hints: bool) -> Iterator[tuple[str, str]]:
    """Yield each file that holds an answer to one of these cases, and what it holds.

    An answer is the text of an edit, before or after it, a cause, a line of a solution, a hint unless the assignment
    gives some; in the files that are made for the assignment also the name of a break. A case's own experiment may hold
    its broken text and must not hold the healthy one.
    """
    for name, content in files.items():
        written = content.decode("utf-8", "replace")
        text = " ".join(written.split())
        for case in cases:
            if name == f"exercises/{case.id}/{EXPERIMENT}":
                # As it is written: a break may be a matter of indentation.
                for edit in case.breaks:
                    if edit.find in written and edit.find not in edit.replace:
                        yield name, f"the healthy text of {case.id}: {edit.find!r}"
                continue
            if name.endswith(f"/{EXPERIMENT}"):
                continue  # `grader course check` says so if it is the same experiment
            texts = _answers(case, hints=hints)
            texts |= dict.fromkeys(case.parts, "the name of the break") if _is_own(name) else {}
            for answer, what in texts.items():
                if (short := " ".join(answer.split())) and short in text:
                    yield name, f"{what} of {case.id}: {short!r}"


def _answers(case: Case, *, hints: bool) -> dict[str, str]:
    edits = (text for edit in case.breaks for text in (edit.find, edit.replace))
    # A single word or number stands in many files.
    texts = {text: "an edit" for text in edits if not re.fullmatch(r"[\w.]*", text.strip())}
    texts |= dict.fromkeys(() if hints else case.hints, "a hint")
    for part in map(load_recipe, case.parts):
        texts |= {part.cause: "the cause"} | dict.fromkeys(() if hints else part.hints, "a hint")
        for path in sorted((SOLUTIONS / part.id).glob("*.*")):
            lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
            texts |= {line: "a line of the solution" for line in lines if len(line) > _LONG_LINE}
    return texts


def _is_own(name: str) -> bool:
    """Return whether a file of a kit was made for its assignment; all others say the same in every kit."""
    is_written = name.startswith(tuple(f"exercises/{one}/" for one in file_exercise_ids()))
    return (name.startswith("exercises/") and not is_written) or "/" not in name


def read_kit(tarball: Path) -> dict[str, bytes]:
    """Return the files of a kit by path, without its folder. Raises `UserError` if it is no tarball."""
    try:
        with tarfile.open(tarball) as tar:
            members = {item.name: tar.extractfile(item) for item in tar if item.isfile()}
            return {name.removeprefix(f"{_FOLDER}/"): file.read() for name, file in members.items() if file is not None}
    except FileNotFoundError:
        raise UserError(f"There is no {tarball}: name the archive that grader kit wrote.") from None
    except (tarfile.TarError, EOFError, ZlibError, gzip.BadGzipFile):
        raise UserError(f"{tarball} is no archive of grader kit: build it again.") from None


def inspect_kit(tarball: Path, course: Course, assignment: Assignment) -> tuple[list[str], bool]:
    """Return lines that list what is in an archive and which answers it holds, and whether it gives one away."""
    files = read_kit(tarball)
    lines = [f"{len(content):>9,}  {name}" for name, content in sorted(files.items())]
    found = list(answers_in(files, course.cases(assignment), hints=assignment.hints))
    own = [f"GIVEN AWAY: {name} holds {what}" for name, what in found if _is_own(name)]
    ids = {f"exercises/{name}" for name in assignment.exercises}
    strangers = sorted({"/".join(name.split("/")[:2]) for name in files if name.startswith("exercises/")} - ids)
    own += [f"GIVEN AWAY: {name} is not of {assignment.id}" for name in strangers]
    every = [f"in every kit: {name} holds {what}" for name, what in found if not _is_own(name)]
    return [*lines, describe_kit(files), *every, *own], bool(own)


def describe_kit(files: Mapping[str, bytes]) -> str:
    """Return what `grader kit` prints: how much is inside, and the exercises."""
    exercises = sorted({name.split("/")[1] for name in files if name.startswith("exercises/")})
    size = sum(map(len, files.values())) / 1e6
    return f"{len(files)} files, {size:.1f} MB, {count_noun(len(exercises), 'exercise')}: {', '.join(exercises)}"
