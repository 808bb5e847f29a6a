"""The data that the page shows: the queue of a level, and the state of one exercise, read from its workspace."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from harness.checks import checks_for, load_check
from harness.errors import UserError
from harness.files import write_whole
from harness.recipes.cases import TITLE
from harness.recipes.catalogue import SUITE
from harness.recipes.mysteries import is_hidden, level_of_hidden
from harness.recipes.recipe import LEVELS, NO_HINTS, KitRecipe, Recipe, listed_ids
from harness.recipes.suite import as_typed
from harness.run.files import CHECKPOINT, METRICS_LOG
from harness.run.metrics_log import Record, batch_records, epoch_records, parse_log, to_strict
from harness.student.attempts import Attempt, edit_of, list_attempts
from harness.student.certificate import write_certificate
from harness.student.debrief import explain, first_records, has_debrief
from harness.student.exercise import claim_healthy
from harness.student.goal import describe_goal
from harness.student.hints import LEADS_TO, give_hint
from harness.student.queue import CASES_OF_A_LEVEL, PracticeQueue
from harness.student.run_process import partial_folder
from harness.student.solution import note_reveal, question_before
from harness.student.summary import (
    ATTEMPT_COLUMNS,
    HIDDEN_GOAL,
    attempt_verdict,
    attempt_views,
    claim_rows,
    claim_verdict,
    metric_rows,
    run_figures,
)
from harness.workspace.progress import MOST_HINTS, begun_exercises, progress_of
from harness.workspace.workspace import RUNS, SETTINGS, Workspace, open_workspace, read_source, story_text

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_STEP_SIGNALS, _EPOCH_SIGNALS = ("loss", "lr", "grad_norm"), ("val_loss", "val_accuracy")


def read_queue(work: Path, level: int) -> dict[str, Any]:
    """Return the exercises of a level: those that are begun, then the case that `harness next` would start.

    level: 0 for the student's level. All names of cases are neutral. A course kit has no levels: its queue contains all
    its exercises.
    """
    queue = PracticeQueue(work)
    level = min(level, LEVELS) or queue.level
    begun = {name for name in begun_exercises(work) if (work / name / SETTINGS).is_file()}
    known = {name for name in begun if is_hidden(name) or name in listed_ids()}
    if queue.in_kit:
        names = listed_ids()
    else:
        names = sorted((name for name in known if _level_of(name) == level), key=_by_number)
        with suppress(UserError):  # the student had every case of the level
            names.append(queue.draw(level))
    others = sorted(known - set(names), key=_by_number)
    return {
        "level": level,
        "levels": 0 if queue.in_kit else LEVELS,
        "solved": len(queue.solved_on(level)),
        "needed": CASES_OF_A_LEVEL,
        "certificates": [] if queue.in_kit else [one for one in range(1, LEVELS + 1) if queue.is_complete(one)],
        "items": [_queue_item(work, name) for name in names],
        "others": [_queue_item(work, name) for name in others],
    }


def read_certificate(work: Path, level: int) -> str | None:
    """Return the page that certifies a level, or None if the level is not complete."""
    path = write_certificate(work, level, PracticeQueue(work))
    return path.read_text(encoding="utf-8") if path else None


def _level_of(name: str) -> int | None:
    if is_hidden(name):
        return level_of_hidden(name)
    goal = SUITE.find(name).goal
    return goal.level if goal else None


def _by_number(name: str) -> tuple[str, int]:
    head, _, number = name.rpartition("-")
    return (head, int(number)) if number.isdigit() else (name, 0)


def _queue_item(work: Path, name: str) -> dict[str, Any]:
    progress = progress_of(work / name)
    state = open_workspace(work, name).state() if (work / name / SETTINGS).is_file() else "not started"
    title = SUITE.find(name).title
    if is_hidden(name):
        title = TITLE if progress.solved is None else ", ".join(progress.solved.causes)
    return {"name": name, "title": title, "state": state, "hints": progress.hints, "revealed": progress.revealed}


def read_case(name: str, work: Path, triage: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the state of an exercise as plain data for JSON. triage: the last result of triage, or None.

    Raises `UserError` for an unknown exercise, and if a file of the workspace is invalid.
    """
    recipe = SUITE.find(name)
    folder = work / name
    found: dict[str, Any] = {
        "name": name,
        "title": TITLE if recipe.is_case else recipe.title,
        "prompt": render_markdown(as_typed(story_text(name))),
        "begun": False,
        "state": "not started",
        "resumable": "",
    }
    if not (folder / SETTINGS).is_file():
        return found
    workspace = open_workspace(work, name)
    found["resumable"] = _resumable(workspace)
    if not workspace.has_run("broken"):
        return found
    return {**found, "begun": True, "state": workspace.state(), **_read_workspace(workspace, recipe, triage)}


def _resumable(workspace: Workspace) -> str:
    """Return the job that can continue a stopped run (a key of `harness.practice.job.JOBS`), or ""."""
    run, verb = ("fixed", "verify") if workspace.has_run("broken") else ("broken", "exercise")
    return verb if (partial_folder(workspace.run_folder(run)) / CHECKPOINT).is_file() else ""


def _read_workspace(workspace: Workspace, recipe: Recipe, triage: dict[str, Any] | None) -> dict[str, Any]:
    broken = workspace.broken_source()
    attempts, views = list_attempts(workspace), attempt_views(workspace)
    last = attempts[-1] if attempts else None
    names, runs = ["broken"], [run_figures(workspace.run_folder("broken"))]
    if workspace.has_run("fixed"):
        names.append("your run")
        runs.append(run_figures(workspace.run_folder("fixed")))
    progress = progress_of(workspace.folder)
    source = ""
    file = read_experiment(workspace)
    if not file["problem"]:
        source = file["text"]
    return {
        "experiment": file,
        "edit": edit_of(broken, source) if source else [],
        "current": workspace.fixed_run_is_current(),
        # The criteria of a hidden exercise would tell whether anything is broken.
        "goal": [] if recipe.is_case else describe_goal(recipe, workspace.settings.dataset),
        "goal_says": HIDDEN_GOAL if recipe.is_case else "The experiment counts as fixed if:",
        "metrics": {"columns": names, "rows": metric_rows(runs)},
        "pages": [run for run in ("broken", "fixed") if workspace.has_run(run)],
        "criteria": [] if last is None else [
            {"says": item.says, "found": item.found, "reached": item.reached} for item in last.criteria
        ],
        "verdict": "" if last is None else as_typed(attempt_verdict(workspace, last, in_shell=False)),
        "fixed": last is not None and last.fixed,
        "last": None if last is None else last.number,
        "history": {
            "columns": ATTEMPT_COLUMNS,
            "attempts": [{"number": one.number, "cells": one.cells, "edit": one.edit} for one in views],
            "claims": claim_rows(workspace),
        },
        "hints": {
            "offered": recipe.hints != NO_HINTS,
            "open": progress.solved is None,
            "most": MOST_HINTS,
            "leads_to": LEADS_TO,
            "given": [render_markdown(give_hint(workspace, number)) for number in range(1, progress.hints + 1)],
        },
        "checks": [] if recipe.triage == "off" else [
            {"name": one.replace("_", "-"), "question": load_check(one).question} for one in checks_for(broken)
        ],
        "triage": None if triage is None else {**triage, "source": None, "current": triage["source"] == source},
        "explained": has_debrief(recipe),
        "claimable": is_hidden(recipe.id) and progress.solved is None,
        "solved": ", ".join(progress.solved.causes) if progress.solved else "",
        "explanation": _read_explanation(recipe, workspace, attempts),
    }  # fmt: skip


def _read_explanation(recipe: Recipe, workspace: Workspace, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Return the passages of the explanation, or [] if the student may not see it yet."""
    if isinstance(recipe, KitRecipe) or question_before(recipe, workspace.folder):
        return []
    attempt = next((one for one in reversed(attempts) if one.fixed), None)
    return [
        {"heading": one.heading, "minor": one.minor, "html": render_markdown(one.text), "edit": one.edit}
        for one in explain(recipe, attempt, first_records(workspace.folder))
    ]


def reveal(name: str, work: Path, *, yes: bool) -> str:
    """Record that the student sees the solution, which `read_case` then returns.

    Return "" or, if the student did not answer yes, the question to ask first. Raises `UserError` in a course kit.
    """
    recipe, folder = SUITE.find(name), open_workspace(work, name).folder
    question = question_before(recipe, folder)
    if question and not yes:
        return question
    note_reveal(recipe, folder)
    return ""


def claim(name: str, work: Path) -> str:
    """Judge the student's claim that nothing is broken, as `harness verify --healthy` does. Return the verdict."""
    workspace = open_workspace(work, SUITE.find(name).id)
    return claim_verdict(workspace, right=claim_healthy(workspace))


def next_hint(name: str, work: Path) -> None:
    """Record that the student asked for the next hint. Raises `UserError` if the course gives no hints."""
    workspace = open_workspace(work, SUITE.find(name).id)
    give_hint(workspace, min(progress_of(workspace.folder).hints + 1, MOST_HINTS))


def read_experiment(workspace: Workspace) -> dict[str, Any]:
    """Return the text of the student's experiment and its digest; or the problem, if it is missing or not UTF-8."""
    try:
        text = read_source(workspace.experiment)
    except UserError as error:
        return {"text": "", "seen": "", "problem": as_typed(str(error))}
    return {"text": text, "seen": _digest(text), "problem": ""}


def save_experiment(name: str, work: Path, text: str, seen: str) -> dict[str, Any]:
    """Replace the student's experiment, atomically, and return it as `read_experiment` does.

    seen: the digest of the text that the student edited. If the file has another text now, write nothing and raise
    `UserError`.
    """
    workspace = open_workspace(work, SUITE.find(name).id)
    found = read_experiment(workspace)
    text = text.replace("\r\n", "\n")
    if found["seen"] != seen and found["text"] != text:
        raise UserError(
            f"{workspace.experiment} has changed on the disk since you loaded it, so it was not saved: load it from the"
            " disk, or keep your text, which then replaces it."
        )
    if found["problem"] or found["text"] != text:
        # A link may lead to the file, so replace the file, not the link.
        write_whole({workspace.experiment.resolve(): _encode(text)})
    return read_experiment(workspace)


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise UserError(f"Line {line} contains half of a character, which UTF-8 cannot store: remove it.") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_curves(name: str, work: Path) -> dict[str, Any]:
    """Return {run: {signal: values}} of the broken run, the fixed run and unfinished runs, for the charts.

    Values that are not finite are the words NaN, Infinity and -Infinity.
    """
    workspace = open_workspace(work, SUITE.find(name).id)
    found = {}
    for run in RUNS:
        folder = workspace.run_folder(run)
        for key, place in ((run, folder), (f"{run}.partial", partial_folder(folder))):
            if (path := place / METRICS_LOG).is_file():
                found[key] = _curves_of(path)
    return found


def _curves_of(path: Path) -> dict[str, Any]:
    text = path.read_bytes().decode("utf-8", "replace")
    try:
        records = parse_log(text[: text.rfind("\n") + 1], str(path))  # a run may be writing its last line
    except UserError:
        return {}
    return {
        "steps": _values(batch_records(records), ("step", *_STEP_SIGNALS)),
        "epochs": _values(epoch_records(records), ("epoch", *_EPOCH_SIGNALS)),
    }


def _values(records: list[Record], signals: tuple[str, ...]) -> dict[str, list[Any]]:
    return {signal: [to_strict(record.get(signal)) for record in records] for signal in signals}


def render_markdown(text: str) -> str:
    """Return Markdown as HTML without raw HTML in it. Its headings are at least two levels below the page's."""
    tokens = _MARKDOWN.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))
