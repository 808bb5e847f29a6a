import pytest

from harness.checks.core.finding import Table
from harness.console.terminal import fold


def test_a_sentence_is_wrapped_between_words_and_stays_one_line_where_there_is_no_terminal() -> None:
    text = "one two three four five"
    assert fold(text, 12, indent=2, hang=1) == "  one two\n   three\n   four five"
    assert fold(text, None, indent=2) == f"  {text}"


@pytest.mark.parametrize(
    "whole",
    [
        "make verify BREAK=huge_lr WORK=/somewhere/else",
        "make submit BREAK=huge_lr STUDENT=<your login> WORK='/a b/c'",
        "harness triage --seed 7",
        "/a/path/that/is/longer/than/the/line/experiment.py",
    ],
)
def test_a_command_or_path_stays_whole(whole: str) -> None:
    lines = fold(f"Fix that line, then {whole} and go on with the rest.", 30, hang=2).splitlines()
    assert lines[0] == "Fix that line, then"
    assert [line for line in lines if whole in line]


@pytest.mark.parametrize(("heading", "name"), [("norm of its gradient", "short"), ("deviation", "validation inputs")])
def test_a_wide_table_fits_a_usual_terminal(heading: str, name: str) -> None:
    columns = ("layer", *(f"{heading}" for _ in range(5)))
    lines = list(Table("A table", columns, ((name, 1.5, 2.5, 3.5, 4.5, 5.5),)).lines())
    assert max(map(len, lines)) <= 80
    assert lines[-1].split() == [*name.split(), "1.5", "2.5", "3.5", "4.5", "5.5"]
    assert " ".join(word for line in lines[1:-1] for word in line.split()[-1:]).endswith(heading.split()[-1])


def test_a_table_that_fits_is_not_made_narrower() -> None:
    lines = list(Table("A table", ("layer", "norm of its gradient"), (("first", 1.5),)).lines())
    assert lines == ["A table", "  layer  norm of its gradient", "  first                   1.5"]
