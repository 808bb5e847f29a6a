import io

import pytest
from made_up_class import HOSTILE, changed, made_up_class, make_row
from rich.console import Console

from grader.report.terminal import show_submission
from grader.score.verdict import Flag, RuleVerdict, SubmissionScore, full, lost, open_check


def shown(row: SubmissionScore, *, width: int = 80, colour: bool = False) -> str:
    file = io.StringIO()
    show_submission(
        row,
        Console(file=file, width=width, force_terminal=colour, color_system="standard" if colour else None),
    )
    return file.getvalue()


def test_every_kind_of_row_fits_80_columns() -> None:
    for row in made_up_class(20)[0].submissions:
        text = shown(row)
        assert max(map(len, text.splitlines())) <= 80
        assert row.student in text
        assert row.status in text
        for criterion in row.criteria.values():
            for check in criterion.checks:
                assert check.id in text.replace("\n", "")


WARNED = {"warning": "Graded without a sandbox."}


def test_what_was_lost_and_how_it_could_have_been_earned() -> None:
    changes = changed("fix.minimal", lost, "It is [bold]big[/bold].", "Be small.", points=2.5)
    changes |= changed("fix.correct", open_check, "Decide.")
    rule = RuleVerdict(outcome="failed", points=0.0, reason="Not the reference.")
    form = full("form", "T", 1, "Set.").model_copy(update={"rule": rule, "comment": "It is right."})
    changes["explanation.form"] = form
    lines = [
        line.strip() for line in shown(make_row("s", "ada", "steep", changes, provenance=WARNED)).splitlines()
    ]
    assert "Warning: Graded without a sandbox." in lines
    assert "not judged, no total yet" in lines
    assert "The rule said failed (0 of 1): Not the reference." in lines
    assert "The instructor decided 1 of 1: It is right." in lines
    assert "fix open of 20" in lines
    assert "✗ Nothing else was changed  2.5 of 8  fix.minimal" in lines
    assert "It is [bold]big[/bold]." in lines
    assert "What would have earned them: Be small." in lines
    assert "? The cause is gone  open of 12  fix.correct" in lines


@pytest.mark.parametrize("colour", [False, True])
def test_nothing_of_a_student_controls_the_terminal(colour: bool) -> None:
    evil = f"{HOSTILE}\x1b]0;title\x07\r\n\x9b2J[red]{'x' * 5000}"
    changes = changed("fix.minimal", lost, evil, evil)
    row = make_row(evil, evil, evil, changes, flags=(Flag(id=evil, message=evil),), provenance={evil: evil})
    plain = make_row("s", "s", "s", changed("fix.minimal", lost, "a", "b"))
    text = shown(row, colour=colour)
    for character in "\x07\r\x9b\u202e":
        assert character not in text
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert ("\x1b" in text) == colour == ("\x1b" in shown(plain, colour=colour))
    assert "[red]" in text or "[re" in text
    assert len(text) < 30_000
