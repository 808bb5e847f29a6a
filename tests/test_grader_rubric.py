from pathlib import Path

import pytest

from grader.score.rubric import CRITERIA, DEFAULT_RUBRIC, load_weights
from grader.score.verdict import full, lost, open_item, scale_check
from harness.errors import UserError


def test_the_weights_are_those_of_the_specification() -> None:
    weights = load_weights()
    assert [sum(weights[criterion].values()) for criterion in CRITERIA] == [35, 30, 20, 15]


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        ("correct = 12", "correct = 13", "add up to 101"),
        ("minimal = 8", "", "add up to 92"),
        ("minimal = 8", "minimum = 8", "fix.minimum is not an item"),
        ("correct = 12", "correct = -12", "fix.correct: Input should be"),
        ("correct = 12", "correct = true", "fix.correct: write a number"),
        ("correct = 12", "correct = nan", "fix.correct: Input should be"),
        ("[fix] ", "[fixes] ", "fixes.correct is not an item"),
        ("format_version = 1", "format_version = 2", "format_version: write 1"),
        ("format_version = 1", "format_version =", "is not TOML"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused(find: str, replace: str, said: str, tmp_path: Path) -> None:
    text = DEFAULT_RUBRIC.read_text()
    assert text.count(find) == 1
    path = tmp_path / "rubric.toml"
    path.write_text(text.replace(find, replace))
    with pytest.raises(UserError, match=said) as refusal:
        load_weights(path)
    assert str(path) in str(refusal.value)


def test_other_weights_keep_the_share_that_was_earned() -> None:
    assert scale_check(full("a", "A", 8, ""), 4).points == 4
    half = scale_check(lost("a", "A", 12, "", "", points=4), 6)
    assert (half.points, half.max) == (2, 6)
    assert scale_check(open_item("a", "A", 8, ""), 4).points is None
    assert scale_check(lost("a", "A", 8, "", ""), 0).points == 0
