"""End an interview: judge the script, the tests and the follow-up, and write the page and the report."""

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from markupsafe import Markup

from harness.behaviour.child import behaviour_of
from harness.behaviour.compare import Behaviour
from harness.files import write_whole
from harness.interview.draw import Interview
from harness.interview.follow_up import judge_follow_up
from harness.interview.judge import (
    FaultVerdict,
    InterviewVerdict,
    judge_source,
    judge_tests,
    require_python,
    text_state,
    verdict_of,
)
from harness.interview.room import NOTES, PAGE, TESTS, Room
from harness.interview.tests_of import run_tests
from harness.page.run_page import TEMPLATES, content_policy, page_environment
from harness.recipes.known_edits import load_shared_edits
from harness.recipes.recipe import SOLUTIONS, Recipe
from harness.run.settings import RunSettings
from harness.workspace.workspace import read_source

VERDICT = "verdict.json"
_OWN = Path(__file__).parent / "templates"
_SOUND_VARIANTS = 3
_QUESTION = "**Interview question.**"
Say = Callable[[str], None]


@dataclass(frozen=True)
class FaultNotes:
    """What the page says of a fault: its id and cause, the reference fix as lines of a diff, a question for later."""

    id: str
    cause: str
    fix: tuple[str, ...]
    question: str


@dataclass(frozen=True)
class InterviewReport:
    """The end of an interview, as the page shows it."""

    total: float
    rows: Sequence[tuple[str, ...]]
    introduced: Sequence[str]
    bad_tests: Sequence[str]
    follow_up: Sequence[tuple[str, ...]]
    faults: Sequence[FaultNotes]


def finish_room(room: Room, say: Say = lambda sentence: None) -> InterviewVerdict:
    """Stop the clock, judge the interview, and write its page and `verdict.json`. `say` gets a sentence for each step.

    Raises `UserError` if the script does not run.
    """
    interview, source = room.interview, read_source(room.script)
    notes, _ = read_source(room.folder / NOTES), read_source(room.folder / TESTS)
    require_python(source)
    if not room.state.finished:
        room.finish()
    say("Comparing the script with the healthy one.")
    states, introduced = judge_source(interview, source, cache(_measure(interview)))
    caught, bad_tests = _test(room, say)
    say("Trying the follow-up.")
    follow_up = judge_follow_up(interview.kind, room.folder, interview.healthy_source())
    verdict = verdict_of(interview, states, introduced, notes, caught, bad_tests, follow_up)
    write_whole({room.folder / VERDICT: (json.dumps(asdict(verdict), indent=1) + "\n").encode()}, durable=False)
    write_page(room, verdict)
    return verdict


def _measure(interview: Interview) -> Callable[[str], Behaviour]:
    settings = RunSettings(seed=interview.seed, dataset=interview.dataset)
    return lambda source: behaviour_of(source, settings)


def _test(room: Room, say: Say) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Run the candidate's tests on the healthy script, on sound variants and on the script with each fault alone."""
    interview, healthy = room.interview, room.interview.healthy_source()
    tests = read_source(room.folder / TESTS)
    say("Running your tests on the healthy script.")
    passed = run_tests(room.folder, healthy, tests)
    if not any(passed.values()):
        reason = "test_train.py has no test that passes on the healthy script."
        failing = [f"{name} fails on the healthy script, so it tests no fault." for name in passed]
        return {}, failing or [reason]
    say("Running your tests on sound variants, and on the script with each fault.")
    variants = {id: run_tests(room.folder, source, tests) for id, source in sound_variants(interview).items()}
    broken = {id: run_tests(room.folder, interview.source_with([id]), tests) for id in interview.faults}
    return judge_tests(passed, variants, broken)


def sound_variants(interview: Interview) -> dict[str, str]:
    """Return the source of some sound variants of the healthy script; {} where the solutions are not installed."""
    shared = load_shared_edits(interview.experiment) if SOLUTIONS.is_dir() else ()
    sound = [edit for edit in shared if edit.verdict == "sound"][:_SOUND_VARIANTS]
    return {edit.id: edit.source(interview.healthy_source()) for edit in sound}


# --- the page ---


def write_page(room: Room, verdict: InterviewVerdict | None = None) -> Path:
    """Write the interview's page, with the report if there is a verdict. Return its path."""
    script = (_OWN / "clock.js").read_text(encoding="utf-8")
    style = (TEMPLATES / "run.css").read_text(encoding="utf-8")
    ends = ""
    if not room.state.finished and not room.is_paused:
        left = timedelta(minutes=room.state.minutes) - room.time_used()
        ends = (datetime.now(UTC) + left).isoformat(timespec="seconds")
    page = (
        page_environment(TEMPLATES, _OWN)
        .get_template("interview.html.j2")
        .render(
            title="Interview",
            kind=room.interview.kind,
            seed=room.interview.seed,
            clock=room.clock() if not room.state.finished else f"{_minutes(room.time_used())} minutes",
            ends=ends,
            report=None if verdict is None else _report(room, verdict),
            diary=[*_diary(room)],
            policy=content_policy(style, script),
            style=Markup(style),
            script=Markup(script),
        )
    )
    path = room.folder / PAGE
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def _minutes(time: timedelta) -> str:
    return f"{time / timedelta(minutes=1):.0f}"


def _diary(room: Room) -> Iterator[tuple[str, ...]]:
    before = None  # the first entry is the first run
    for one, source in room.versions():
        changed = 0 if before is None else sum(line[:1] in "+-" for line in _diff(before, source))
        yield _minutes(room.time_used(one.at)), one.what, one.says, str(changed) if changed else ""
        before = source


def _diff(one: str, two: str) -> list[str]:
    return [line.rstrip("\n") for line in difflib.unified_diff(one.splitlines(), two.splitlines(), "", "", n=1)][2:]


def _report(room: Room, verdict: InterviewVerdict) -> InterviewReport:
    recipes = {one.id: one for one in room.interview.recipes()}
    return InterviewReport(
        verdict.total,
        [_row(room, recipes[one.id], one) for one in verdict.faults],
        verdict.introduced,
        verdict.bad_tests,
        [(name, said, f"{points:g} of {most:g}") for name, (points, most, said) in verdict.follow_up.items()],
        [_fault_report(room.interview, recipes[one.id]) for one in verdict.faults],
    )


def _row(room: Room, recipe: Recipe, found: FaultVerdict) -> tuple[str, ...]:
    fixed = "yes" if found.fixed else "a person decides" if found.how == "a person" else "no"
    return (
        recipe.id,
        fixed + (", in another way" if found.fixed and found.how == "behaviour" else ""),
        _first_right(room, recipe) if found.fixed else "",
        "yes" if found.named else "no",
        ", ".join(found.caught_by) or "no test",
        f"{found.points:g} of 20",
    )


def _first_right(room: Room, recipe: Recipe) -> str:
    """Return the minute and the action at which the broken lines of a fault had gone, and what was looked at before."""
    looked: list[str] = []
    for one, source in room.versions():
        if text_state(recipe.breaks, source) != "broken":
            seen = f", after {', '.join(dict.fromkeys(looked))}" if looked else ", by reading alone"
            return f"minute {_minutes(room.time_used(one.at))}{seen}"
        looked.append(one.what)
    return ""


def _fault_report(interview: Interview, recipe: Recipe) -> FaultNotes:
    healthy = interview.healthy_source()
    notes = SOLUTIONS / recipe.id / "notes.md"
    text = notes.read_text(encoding="utf-8") if notes.is_file() else ""
    question = " ".join(text.partition(_QUESTION)[2].split("\n\n")[0].split())
    return FaultNotes(recipe.id, recipe.cause, tuple(_diff(interview.source_with([recipe.id]), healthy)), question)


def show_verdict(verdict: InterviewVerdict) -> Iterator[str]:
    """Yield the verdict as lines of text."""
    for one in verdict.faults:
        unknown = "unlike all known fixes: a person decides about 12 more points"
        parts = ["fixed" if one.fixed else unknown if one.how == "a person" else "not fixed"]
        parts += ["its place named"] if one.named and one.fixed else []
        parts += [f"caught by {', '.join(one.caught_by)}"] if one.caught_by else []
        yield f"{one.points:>4g} of 20  {one.id}: {', '.join(parts)}"
    gained = sum(points for points, _, _ in verdict.follow_up.values())
    yield f"{gained:>4g} of 20  the follow-up"
    for line in verdict.introduced:
        yield f"  -5        changed, although it was sound: {line}"
    yield from (f"            {line}" for line in verdict.bad_tests)
    yield f"{verdict.total:>4g} of 100 points"
