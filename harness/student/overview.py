"""All exercises with the student's progress in each: the list, the progress by level, and both as JSON for editors."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.console.output import show_folded, show_line, show_next
from harness.recipes.cases import TITLE
from harness.recipes.mysteries import is_hidden, level_of_hidden
from harness.recipes.recipe import LEVELS, Recipe, load_recipes
from harness.recipes.suite import as_typed
from harness.run.files import EXPERIMENT
from harness.student.certificate import title_of, write_certificate
from harness.student.queue import CASES_OF_A_LEVEL, CaseRecord, PracticeQueue, duration
from harness.workspace.progress import Progress, begun_exercises, noted_student, progress_of
from harness.workspace.workspace import SETTINGS, make_command, open_workspace, queue_command
from harness.written.exercise import file_exercise_ids, find_file_exercise
from harness.written.workspace import FileWorkspace

_COLUMNS = ("exercise", "fault", "solved", "time", "tries", "hints", "report", "score")
_LEFT = 2  # the number of columns that are aligned to the left
_BAR = 20  # the width of the bar of a level


class ExerciseRow(NamedTuple):
    """An exercise in the list.

    `level` is 0 for a case of a course, and None for an exercise without a level. `hidden` says whether its name does
    not tell its fault.
    """

    id: str
    title: str
    level: int | None
    state: str
    progress: Progress
    hidden: bool = False

    @property
    def done(self) -> bool:
        """Whether the exercise is solved, handed in, or scored at home."""
        return self.state in ("solved", "handed in") or self.progress.score is not None

    def as_data(self) -> dict[str, Any]:
        """Return the row as plain data for JSON."""
        noted = self.progress.model_dump(mode="json", exclude={"format_version", "prediction"})
        return {
            "id": self.id,
            "title": self.title,
            "level": self.level,
            "hidden": self.hidden,
            "state": self.state,
        } | noted


def list_exercises(work: Path) -> tuple[list[ExerciseRow], list[str]]:
    """Return all exercises, easy ones first, and the problems of invalid recipes.

    Hidden exercises that the student has begun are last.
    """
    recipes, problems = load_recipes()
    # Easy exercises first: faults that are visible in a short file. Faults in a long file that need measurements are
    # last.
    ordered = sorted(recipes, key=lambda one: (one.goal.level if one.goal else 0, one.broken_source().count("\n")))
    student = noted_student(work)
    own = [one for one in ordered if student is None or one.case_of(student) == one.id or (work / one.id).is_dir()]
    rows = [_row(work, one.id, one.title, _level(one)) for one in own]
    for exercise in filter(None, map(find_file_exercise, file_exercise_ids())):
        rows.append(_row(work, exercise.id, exercise.title, None))
    for name in sorted(filter(is_hidden, begun_exercises(work))):
        solved = progress_of(work / name).solved
        title = TITLE if solved is None else ", ".join(f"{cause}: {title_of(cause)}" for cause in solved.causes)
        rows.append(_row(work, name, title, level_of_hidden(name))._replace(hidden=True))
    return rows, [*problems.values()]


def show_exercises(work: Path) -> None:
    """Print all exercises by level, the student's progress in each exercise, and the next exercise to do."""
    console = Console()
    rows, problems = list_exercises(work)
    hidden = [row for row in rows if row.hidden]
    named = [row for row in rows if not row.hidden]
    for level, group in groupby(named, key=lambda row: row.level):
        heading = {None: "Written answers", 0: "Cases of your course"}.get(level, f"Level {level}")
        _show_group(console, heading, list(group))
    if hidden:
        done = sum(row.done for row in hidden)
        _show_rows(console, f"Your cases: {done} of {len(hidden)} solved", hidden)
    for problem in problems:
        show_line(console, f"An exercise is left out. {problem}", style="bold red")
    done = sum(row.done for row in named)
    says = f"{done} of {len(named)} exercises are done (solved, handed in, or scored at home)."
    console.print(says, style="bold", highlight=False)
    following = next((row for row in named if not row.done), None)
    lines = [f"{queue_command('next', work)}  # the next case, whose name does not tell the fault"]
    if following is not None:
        lines.append(f"or study a fault by its name: {make_command('exercise', work / following.id)}")
    show_next(console, *lines)


def exercises_as_json(work: Path) -> str:
    """Return all exercises and the student's progress in each as JSON."""
    rows, problems = list_exercises(work)
    found = {"format_version": 1, "exercises": [row.as_data() for row in rows], "problems": problems}
    return json.dumps(found, indent=1, ensure_ascii=False)


def show_progress(work: Path) -> None:
    """Print the progress by level, the exercises that are begun, and the next step.

    Write the certificate of each level that is complete.
    """
    console, queue = Console(), PracticeQueue(work)
    student = noted_student(work)
    console.print(f"Progress of {student}" if student else "Your progress", style="bold", markup=False, highlight=False)
    for level in () if queue.in_kit else range(1, LEVELS + 1):
        show_line(console, level_line(work, level, queue))
    records = [*queue.records, *_named_records(work, queue)]
    if records:
        console.print(_table(records))
    show_status(work)


def show_status(work: Path) -> None:
    """Print which case is open, or the command for the next one."""
    case = PracticeQueue(work).open_case()
    if case is None:
        show_next(Console(), queue_command("next", work))
    else:
        show_open_case(work, case)


def level_line(work: Path, level: int, queue: PracticeQueue) -> str:
    """Return a line that shows how many cases of a level are solved, and its certificate if the level is complete.

    This writes the certificate.
    """
    count = len(queue.solved_on(level))
    filled = min(count, CASES_OF_A_LEVEL) * _BAR // CASES_OF_A_LEVEL
    path = write_certificate(work, level, queue)
    end = f"{count} cases, complete: {path}" if path else f"{count} of {CASES_OF_A_LEVEL} cases"
    return f"Level {level}  {'█' * filled}{'░' * (_BAR - filled)}  {end}"


def show_open_case(work: Path, case: CaseRecord) -> None:
    """Print which case is open, and how the student goes on with it or puts it aside."""
    console, folder = Console(), work / case.name
    level = "" if case.level is None else f", on level {case.level}"
    hints = case.progress.hints
    helped = f" You have read {hints} {'hint' if hints == 1 else 'hints'}." if hints else ""
    show_folded(console, f"{case.name} is open{level}.{helped}", style="bold")
    claims = is_hidden(case.name)
    show_next(
        console,
        f"fix {folder / EXPERIMENT}, then {make_command('verify', folder)}",
        *([f"or, if you find nothing wrong: {make_command('verify', folder, ' HEALTHY=1')}"] if claims else []),
        f"to put it aside and get another: {queue_command('next', work, ' SKIP=1')}",
    )


def status_as_json(work: Path) -> str:
    """Return the student's level, the open case, and how many cases of each level are solved, as JSON."""
    queue = PracticeQueue(work)
    case = queue.open_case()
    levels = [
        {"level": level, "solved": len(queue.solved_on(level)), "needed": CASES_OF_A_LEVEL}
        for level in (() if queue.in_kit else range(1, LEVELS + 1))
    ]
    found = {
        "format_version": 1,
        "student": noted_student(work),
        "level": None if queue.in_kit else queue.level,
        "open": None if case is None else {"id": case.name, "level": case.level, "state": _state(work, case.name)},
        "next": as_typed(make_command("verify", work / case.name) if case else queue_command("next", work)),
        "levels": levels,
    }
    return json.dumps(found, indent=1, ensure_ascii=False)


def _named_records(work: Path, queue: PracticeQueue) -> Iterator[CaseRecord]:
    """Yield the exercises with a name of their own that the student has begun."""
    there = {one.name for one in queue.records}
    rows, _ = list_exercises(work)
    for row in rows:
        if not row.hidden and row.id not in there and row.state != "not started":
            yield CaseRecord(row.id, row.level or None, row.progress)


def _table(records: Sequence[CaseRecord]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for number, name in enumerate(_COLUMNS):
        table.add_column(name, justify="left" if number < _LEFT else "right", overflow="fold")
    for one in records:
        noted, solved = one.progress, one.progress.solved
        cells = [one.name, one.fault or f"({_word_for(noted)})"]
        if solved:
            cells += [f"{solved.at:%d %b}", duration(solved.minutes), str(solved.attempts), str(solved.hints)]
        else:
            cells += ["", "", "", str(noted.hints)]
        explained = f"{noted.explained:%d %b}" if noted.explained else ""
        table.add_row(*map(Text, [*cells, explained, _points(noted.score)]))
    return table


def _word_for(noted: Progress) -> str:
    if noted.handed_in:
        return "handed in"
    return "put aside" if noted.skipped else "solution seen" if noted.revealed else "open"


def _level(recipe: Recipe) -> int | None:
    if recipe.course is not None:
        return 0
    return recipe.goal.level if recipe.goal else None


def _row(work: Path, id: str, title: str, level: int | None) -> ExerciseRow:
    return ExerciseRow(id, title, level, _state(work, id), progress_of(work / id))


def _state(work: Path, id: str) -> str:
    folder, file = work / id, find_file_exercise(id)
    if file is not None:
        return FileWorkspace(folder, file).state()
    if (folder / SETTINGS).is_file():
        return open_workspace(work, id).state()
    noted = progress_of(folder)
    return "handed in" if noted.handed_in is not None else "solved" if noted.solved is not None else "not started"


def _show_group(console: Console, heading: str, rows: Sequence[ExerciseRow]) -> None:
    done = sum(row.done for row in rows)
    praise = ": all done. Well done!" if done == len(rows) else f": {done} of {len(rows)} done"
    _show_rows(console, f"{heading}{praise}", rows)


def _show_rows(console: Console, heading: str, rows: Sequence[ExerciseRow]) -> None:
    console.print(heading, style="bold", highlight=False)
    cells = [
        (row.id, "" if row.state == "not started" else row.state, _points(row.progress.score)) for row in rows
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, own in zip(rows, cells, strict=True):
        shown = (cell.ljust(width) for cell, width in zip(own, widths, strict=True) if width)
        line = Text("  " + "  ".join((*shown, row.title)))
        if console.is_terminal:
            line.truncate(console.width, overflow="ellipsis")
        console.print(line, highlight=False, soft_wrap=True)


def _points(score: float | None) -> str:
    return "" if score is None else f"{score:g}"
