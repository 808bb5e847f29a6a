import pytest

from harness.errors import UserError
from harness.plain_yaml import LIMIT, shown
from harness.submission.front_matter import parse_front_matter, split_report


def test_values_stay_as_they_were_written_and_know_their_line() -> None:
    front = parse_front_matter("a: 0.930\nb:\n  - {c: 010, d: yes}\n  - 'NaN'\ne:\n", "report.md")
    assert front.values == {"a": "0.930", "b": [{"c": "010", "d": "yes"}, "NaN"], "e": None}
    assert front.lines["a",] == 2
    assert front.lines["b", 0, "d"] == 4
    assert front.lines["b", 1] == 5


def test_a_report_is_split_at_its_dashes() -> None:
    assert split_report("---\na: 1\n---\nText\n---\n", "report.md") == ("a: 1", "Text\n---\n", 4)
    assert split_report("\ufeff---\r\na: 1\r\n--- \r\nText\r\n", "report.md") == ("a: 1", "Text\n", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a report begins with"),
        ("# Symptom\n", "line 1: a report begins with"),
        ("---\na: 1\n", "does not end"),
        ("---\n" + "a" * (LIMIT + 1) + "\n---\n", "cite fewer numbers"),
    ],
)
def test_a_report_without_whole_front_matter_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        split_report(text, "report.md")


@pytest.mark.parametrize(
    ("matter", "message"),
    [
        ("a: &x 1\nb: *x", "line 2: anchors and aliases"),
        ("b: *x", "line 2: anchors and aliases"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "line 3: tags"),
        ("a: !local 1", "line 2: tags"),
        ("a: 1\na: 2", "line 3: `a` is there twice"),
        ("? [a]\n: 1", "line 2: a key must be a word"),
        ("a: " + "[" * 5000, "brackets within brackets"),
        ("a: {b: 1", "line 2: the front matter is not YAML"),
        ("a: 1\n\tb: 2", "line 3: the front matter is not YAML"),
        ("a: \x07", "control characters"),
        ('a: "\\U00110000"', "is not YAML"),
        ("%YAML " + "9" * 5000 + ".1\n--- {}", "is not YAML"),
        ("a: 1\n...\nb: 2", "is not YAML"),
        ("", "must hold root_cause_layer"),
        ("- a", "must hold root_cause_layer"),
        ("text", "must hold root_cause_layer"),
    ],
)
def test_what_is_not_a_plain_mapping_is_refused(matter: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_front_matter(matter, "report.md")


def test_what_is_shown_cannot_move_the_cursor() -> None:
    assert shown("\x1b[2J\ud800") == r"\x1b[2J\ud800"
    assert len(shown("x" * 1000)) == 40
