"""`grader new-experiment`: add an instructor's data set with a held-out split and an experiment, and check them.

The command writes these files:

- `harness/data/embedded/<name>.npz` contains the training and validation examples, and `<name>.toml` describes them;
- `grader/replay/heldout/<name>.npz` contains the held-out examples, which students never get;
- `harness/experiments/<name>.py` is the healthy experiment, made from a template;
- `solutions/<name>.edits.toml` contains harmless edits of the experiment, which `grader selfcheck` needs.
"""

import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import NDArray

from grader.replay.data import HELDOUT_FOLDER
from grader.replay.replay import Replay
from grader.sandbox import sandbox_problem
from grader.score.evidence import same_bytes
from grader.score.measurements import has_learnt
from grader.selfcheck.runs import SubjectChecks, open_runs, request_of
from harness.checks import checks_for, load_check
from harness.data import DATASETS, DataForm
from harness.data.datasets import EMBEDDED_FOLDER
from harness.errors import UserError, printable
from harness.files import read_text, write_whole
from harness.recipes.known_edits import load_shared_edits
from harness.recipes.recipe import EXPERIMENTS, SOLUTIONS, Recipe, experiment_names, experiment_source
from harness.run.settings import RunSettings

_TEMPLATE = Path(__file__).parent / "templates" / "experiment.py.j2"
_EDITS = _TEMPLATE.with_name("edits.toml")
_SEED = 42
# Limits for the number and the size of examples, which keep runs short and course kits small, and the smallest number
# of examples of a class.
_MOST_EXAMPLES, _MOST_BYTES, _LEAST_OF_A_CLASS = 20_000, 64 * 2**20, 10
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
_TABLE_BYTES = 64 * 2**20
_MOST_CLASSES = 100
# The splits to which five consecutive examples belong.
_PARTS = ("train", "train", "train", "validation", "heldout")
# The first column of a table contains group numbers. Rows whose number is a multiple of this one are for validation or
# held out.
_EVERY = 5


@dataclass(frozen=True)
class Examples:
    """The examples of a data set: inputs uint8 (N, C, H, W) or float32 (N, F), and targets int64 or float32 (N,).

    groups: group numbers (N,). All examples of a group go into the same split.
    """

    inputs: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[np.int64]
    classes: tuple[str, ...]
    columns: tuple[str, ...] = ()


def write_experiment(name: str, data: Path, *, target: str | None, group: str | None) -> list[str]:
    """Write the files of a new experiment. Return lines to print, with the sizes of the splits and the files.

    Raises `UserError` for an invalid name and for unusable data.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{2,39}", name):
        raise UserError(f"{name!r} cannot be a name: use 3 to 40 lower-case letters, digits and _.")
    if name in DATASETS or name in experiment_names():
        raise UserError(f"There is already a data set or an experiment {name}: choose another name.")
    table = _table_in(data)
    if table is None and (target or group):
        raise UserError("--target and --group are names of table columns: do not use them for images.")
    examples = read_table_file(table, target, group) if table else read_pictures(data)
    if len(examples.labels) > _MOST_EXAMPLES or examples.inputs.nbytes > _MOST_BYTES:
        raise UserError(
            f"{data} has {len(examples.labels)} examples ({examples.inputs.nbytes // 2**20} MiB), which is too much for"
            f" runs that take a few seconds: choose at most {_MOST_EXAMPLES} examples and {_MOST_BYTES // 2**20} MiB."
        )
    splits = split(examples)
    kind: Literal["table", "images"] = "table" if table else "images"
    form = DataForm(kind, examples.inputs.shape[1:], examples.columns)
    parts = {part: (examples.inputs[rows], examples.labels[rows]) for part, rows in splits.items()}
    files = _data_files(name, parts, kind)
    files[EMBEDDED_FOLDER / f"{name}.toml"] = _description(form, examples.classes).encode()
    files[EXPERIMENTS / f"{name}.py"] = experiment_text(form, examples.classes).encode()
    files[SOLUTIONS / f"{name}.edits.toml"] = _EDITS.read_bytes()
    write_whole(files)
    counts = ", ".join(f"{len(rows)} {part}" for part, rows in splits.items())
    return [f"{form}: {counts}", *(f"wrote {path}" for path in files if path.suffix != ".sha256")]


def _table_in(data: Path) -> Path | None:
    if data.suffix.lower() == ".csv" and data.is_file():
        return data
    if not data.is_dir():
        said = f"{data} is not a CSV file" if data.is_file() else f"There is no folder {data}"
        raise UserError(f"{said}: name a CSV file, or a folder with a CSV file or with images.")
    tables = sorted(data.glob("*.csv"))
    if others := sorted(path.name for path in data.glob("*.xls*")):
        raise UserError(f"{data / others[0]} is not a CSV file: save it as CSV.")
    if len(tables) > 1:
        raise UserError(f"{data} contains {len(tables)} CSV files: name the file to use.")
    return tables[0] if tables else None


def read_pictures(folder: Path) -> Examples:
    """Return the images in a folder, which has a subfolder for each class.

    Raises `UserError` unless all images have the same size and the same number of channels (1 or 3).
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UserError("Reading images needs Pillow: pip install pillow") from None
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    files = [(number, path) for number, one in enumerate(classes) for path in sorted(one.rglob("*"))]
    files = [(number, path) for number, path in files if path.suffix.lower() in _PICTURES]
    if len({number for number, _ in files}) < 2:
        raise UserError(
            f"{folder} must contain one CSV file, or a folder of images for each of two or more classes, such as"
            f" {folder}/cat/1.png and {folder}/dog/1.png."
        )
    pictures = []
    for _, path in files:
        try:
            with Image.open(path) as picture:
                is_grey = picture.mode in ("1", "L", "LA", "I;16")
                pictures.append(np.atleast_3d(np.asarray(picture.convert("L" if is_grey else "RGB"))))
        except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
            raise UserError(f"{path} cannot be read as an image: {printable(str(error))}") from None
    usual, _ = Counter(one.shape for one in pictures).most_common(1)[0]
    if others := [path for (_, path), one in zip(files, pictures, strict=True) if one.shape != usual]:
        height, width, channels = usual
        raise UserError(
            f"Most images are {height}x{width} with {channels} channel(s), but {len(others)} are different, such as"
            f" {others[0]}: give all images the same size and number of channels."
        )
    inputs = np.stack(pictures).transpose(0, 3, 1, 2).copy()
    labels = np.array([number for number, _ in files], dtype=np.int64)
    return Examples(inputs, labels, _alike(inputs), tuple(one.name for one in classes))


def read_table_file(path: Path, target: str | None, group: str | None) -> Examples:
    """Return the rows of a CSV file whose first line names the columns. By default, the last column is the target.

    If the target column contains whole numbers or words, each value is a class; otherwise, the target is a real number.
    Another column that contains words is replaced by one-hot columns, one for each word. All rows of a group (a
    patient, a machine) go into the same split. Without `group`, equal rows go into the same split.
    """
    text = read_text(path, _TABLE_BYTES, missing="give a CSV file", too_large="choose fewer rows")
    text = text.removeprefix("\ufeff")
    header = text.partition("\n")[0]
    lines = [row for row in csv.reader(io.StringIO(text), delimiter=max(",;\t", key=header.count)) if row]
    headings = [name.strip() for name in lines[0]] if lines else []
    if len(headings) < 2 or len(set(headings)) < len(headings) or not all(headings):
        raise UserError(f"{path} must begin with a line of column names: two or more, all different.")
    for number, row in enumerate(lines[1:], start=2):
        empty = [name for name, cell in zip(headings, row, strict=False) if not cell.strip()]
        if len(row) != len(headings) or empty:
            what = f"has no {empty[0]}" if empty else f"has {len(row)} cells, not {len(headings)}"
            raise UserError(f"{path}, line {number} {what}: fill it in, or remove the line.")
    target = target or headings[-1]
    for name in filter(None, (target, group)):
        if name not in headings:
            raise UserError(f"{path} has no column {printable(name)}: it has {', '.join(map(printable, headings))}.")
    cells = {name: [row[place].strip() for row in lines[1:]] for place, name in enumerate(headings)}
    columns: dict[str, NDArray[np.float32]] = {}
    for name in headings:
        if name not in (target, group):
            columns |= _columns_of(name, cells[name])
    if not columns:
        raise UserError(f"{path} has only the columns for target and group, so there are no inputs: add columns.")
    labels, classes = _targets(cells[target])
    features = np.stack([*columns.values()], axis=1)
    groups = np.unique(cells[group], return_inverse=True)[1].astype(np.int64) if group else _alike(features)
    first = "row" if group is None else _plain(group)
    names = (first, *columns, _plain(target))
    if len(set(names)) < len(names):
        raise UserError(f"{path}: two columns would have the name {Counter(names).most_common(1)[0][0]}: rename one.")
    inputs = np.concatenate([_numbers(groups)[:, None].astype(np.float32), features], axis=1)
    return Examples(inputs, labels, groups, classes, names)


def _plain(name: str) -> str:
    """Return a column's name as a valid identifier in lower case."""
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_") or "column"


def _columns_of(name: str, cells: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return a column of numbers, or a one-hot column for each word in a column of words."""
    numbers = _floats(cells)
    if numbers is not None:
        return {_plain(name): numbers}
    words = sorted(set(cells))
    if len(words) > _MOST_CLASSES:
        raise UserError(f"The column {printable(name)} has {len(words)} different words: leave it out of the CSV.")
    return {f"{_plain(name)}_{_plain(word)}": np.array([cell == word for cell in cells], np.float32) for word in words}


def _floats(cells: Sequence[str]) -> NDArray[np.float32] | None:
    try:
        numbers = np.array([float(cell) for cell in cells], dtype=np.float32)
    except ValueError:
        return None
    if not np.isfinite(numbers).all():
        raise UserError("The CSV file contains a non-finite number: replace it.")
    return numbers


def _targets(cells: Sequence[str]) -> tuple[NDArray[Any], tuple[str, ...]]:
    words = sorted(set(cells), key=lambda cell: (len(cell), cell))
    numbers = _floats(cells)
    if numbers is not None and (len(words) > _MOST_CLASSES or any("." in cell for cell in words)):
        return numbers, ()
    if len(words) > _MOST_CLASSES or len(words) < 2:
        raise UserError(
            f"The target has {len(words)} different values: use numbers, or 2 to {_MOST_CLASSES} different classes."
        )
    return np.array([words.index(cell) for cell in cells], dtype=np.int64), tuple(words)


def _alike(inputs: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each example. Equal inputs have equal numbers, so that they go into the same split."""
    first: dict[bytes, int] = {}
    rows = inputs.reshape(len(inputs), -1)
    return np.array([first.setdefault(row.tobytes(), len(first)) for row in rows], dtype=np.int64)


def _order(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each example, the position of its group in a random order of all groups."""
    # A new release of NumPy may change the random numbers from default_rng, but never those from RandomState.
    every = np.unique(groups)
    place = np.empty(int(every.max()) + 1, dtype=np.int64)
    place[np.random.RandomState(_SEED).permutation(every)] = np.arange(len(every))
    return place[groups]


def _numbers(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a group number for each example, which is a multiple of `_EVERY` if the group is not for training."""
    place = _order(groups)
    turn, rest = np.divmod(place, len(_PARTS))
    trains = np.array([part == "train" for part in _PARTS])[rest]
    aside = turn * (len(_PARTS) - _PARTS.count("train")) + rest - _PARTS.count("train")
    among = turn * _PARTS.count("train") + rest
    return np.where(trains, among + among // (_EVERY - 1) + 1, aside * _EVERY)


def split(examples: Examples) -> Mapping[str, NDArray[np.int64]]:
    """Return {split: row indices}. Raises `UserError` for too few examples, or if a split has no example of a class."""
    part_of = np.array(_PARTS)[_order(examples.groups) % len(_PARTS)]
    found = {part: np.flatnonzero(part_of == part) for part in dict.fromkeys(_PARTS)}
    if len(examples.labels) < 2 * _LEAST_OF_A_CLASS * len(_PARTS):
        raise UserError(
            f"There are {len(examples.labels)} examples: give {2 * _LEAST_OF_A_CLASS * len(_PARTS)} or more."
        )
    for part, rows in found.items():
        for number, name in enumerate(examples.classes):
            if not (examples.labels[rows] == number).any():
                raise UserError(
                    f"The class {printable(name)} has no {part} example: add examples of this class, or leave it out."
                )
    return found


def _data_files(name: str, parts: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], kind: str) -> dict[Path, bytes]:
    what = "images" if kind == "images" else "inputs"
    files: dict[Path, bytes] = {}
    for folder, own in ((EMBEDDED_FOLDER, ("train", "validation")), (HELDOUT_FOLDER, ("heldout",))):
        arrays = {}
        for part in own:
            arrays[f"{part}_{what}"], arrays[f"{part}_labels"] = parts[part]
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        path = folder / f"{name}.npz"
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        files |= {path: buffer.getvalue(), path.with_suffix(".sha256"): f"{digest}  {path.name}\n".encode()}
    return files


def _description(form: DataForm, classes: Sequence[str]) -> str:
    """Return the text of the TOML file that describes a data set. A JSON list is also valid TOML."""
    pairs = {"kind": form.kind, "shape": list(form.shape), "columns": list(form.columns), "classes": list(classes)}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in pairs.items()]
    return "\n".join(["# Written by grader new-experiment; harness/data/__init__.py reads it.", *lines, ""])


def experiment_text(form: DataForm, classes: Sequence[str]) -> str:
    """Return the source of a healthy experiment on data of this form. Without classes, it is a regression."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # not HTML
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(form=form, classes=len(classes), width=len(form.columns) - 2)


def check_experiment(name: str, *, seeds: int, jobs: int) -> int:
    """Check an experiment in the sandbox, and print the problems. Return 0 if there are no problems, otherwise 1.

    With each seed, the experiment must finish, give the same bytes in two runs, be clearly better than guessing, and
    pass each check of `harness triage`. Raises `UserError` for an unknown experiment, and if no sandbox starts on this
    machine.
    """
    source = experiment_source(name)
    if name not in DATASETS:
        raise UserError(f"{name} is an experiment of the suite: use grader selfcheck to check it.")
    if (problem := sandbox_problem()) is not None:
        raise UserError(problem)
    subject = Recipe.model_construct(
        id=name, format_version=2, title="", experiment=name, dataset=name, seed=_SEED,
        area="model", cause="", hints=("", "", ""), breaks=(), symptoms=(), observations=(),
    )  # fmt: skip
    names = tuple(one for one in checks_for(source) if load_check(one).in_triage)
    settings = [RunSettings(seed=_SEED + number, dataset=name) for number in range(seeds)]
    with open_runs(jobs=jobs) as runs:
        wanted = [request_of(subject, source, one, repetition=again) for one in settings for again in (0, 1)]
        made = runs.replays(f"{seeds} seeds, each twice", wanted)
        subjects = [SubjectChecks(source, one, names) for one in settings]
        edits = {edit.id: edit.source(source) for edit in load_shared_edits(name) if edit.verdict == "sound"}
        sound = {id: SubjectChecks(text, settings[0], names) for id, text in edits.items()}
        found = runs.outcomes(f"{len(names)} checks on each seed and sound edit", [*subjects, *sound.values()])
    problems = []
    for one, own in zip(settings, subjects, strict=True):
        runs_of = [made[request_of(subject, source, one, repetition=number)] for number in (0, 1)]
        problems += [f"seed {one.seed}: {problem}" for problem in _problems(name, runs_of, found.get(own))]
        if (figures := runs_of[0].evaluation) and figures.heldout:
            accuracy, loss = figures.heldout.accuracy, figures.heldout.loss
            shown = f"loss {loss:.4g}" if accuracy is None else f"accuracy {accuracy:.1%}"
            print(f"seed {one.seed}: held-out {shown}")
    for id, own in sound.items():
        problems += [f"the sound edit {id}: {problem}" for problem in _alarms(found.get(own))]
    for line in problems:
        print(f"NOT HEALTHY: {line}")
    path = EXPERIMENTS / f"{name}.py"
    if problems:
        print(f"Next: correct {path} or {SOLUTIONS / f'{name}.edits.toml'}, then grader new-experiment {name}")
        return 1
    print(f"{name} repeats byte for byte, learns, and passes {len(names)} checks.")
    print(
        "Next: break the experiment, for example with"
        f" grader new-recipe {name}_rate --experiment {name} --find 'lr=0.003' --replace 'lr=3.0'"
    )
    return 0


def _problems(name: str, runs: Sequence[Replay], outcomes: Mapping[str, str] | None) -> Iterator[str]:
    """Yield the problems of two runs with one seed, and of the outcomes of the checks (None if the checks failed)."""
    first, again = runs
    if first.status == "XX":  # the grader or the machine failed
        raise RuntimeError(first.message)
    if first.status != "OK":
        yield first.message
        return
    if not same_bytes(first, again):
        yield "a second run gives other bytes than the first run"
    if not has_learnt(first, name):
        yield "on held-out examples, the network is hardly better than guessing"
    yield from _alarms(outcomes)


def _alarms(outcomes: Mapping[str, str] | None) -> Iterator[str]:
    if outcomes is None:
        yield "the checks cannot run on this experiment"
    for check, outcome in (outcomes or {}).items():
        if not load_check(check).outcome(outcome).sound:
            yield f"the check {check.replace('_', '-')} finds {outcome}"


def in_new_process(name: str, *, seeds: int, jobs: int) -> int:
    """Check an experiment in a new process, because this process has an old list of data sets without the new one."""
    words = ["new-experiment", name, "--seeds", str(seeds), "--jobs", str(jobs)]
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-P", "-m", "grader", *words], check=False).returncode
