from pathlib import Path

import pytest

from harness.errors import UserError
from harness.submission.limits import REPORT_BYTES
from harness.submission.report import parse_report, read_report
from harness.workspace.workspace import report_template

MATTER = """\
---
diagnosis:
  - cause: huge_lr
    where: build_optimizer
    first_wrong: {signal: loss, step: 1, value: 31.84}
ruled_out:
  - {cause: label_permute, signal: loss, step: 2, value: 6,305.9}
  - {cause: loss_sum, check: loss_form, outcome: agrees}
evidence:
  - {run: fixed, signal: val_accuracy, epoch: 3, value: 0.930}
---
"""
REPORT = MATTER + "\n# Cause\n\nThe rate.\n"


def test_a_whole_report_is_read() -> None:
    report = parse_report(REPORT)
    (diagnosis,) = report.diagnosis
    assert (diagnosis.cause, diagnosis.where) == ("huge_lr", "build_optimizer")
    as_people_write = (
        "{cause: Huge-LR, where: experiment.py, load_data, first_wrong: {signal: loss, step: 1, value: 1,234.5}}"
    )
    rival = "{cause: Loss Sum, signal: loss, step: 1, value: 2}"
    text = f"---\ndiagnosis:\n  - {as_people_write}\nruled_out:\n  - {rival}\nevidence: []\n---\n"
    read = parse_report(text)
    [named] = read.diagnosis
    assert (named.cause, named.where, named.first_wrong.value) == ("huge_lr", "experiment.py, load_data", "1,234.5")
    assert read.ruled_out[0].cause == "loss_sum"
    value, check = report.ruled_out
    assert (value.cause, value.signal, value.step, value.value) == ("label_permute", "loss", 2, "6,305.9")
    assert (check.check, check.outcome) == ("loss_form", "agrees")
    assert [str(sign) for sign in report.cited_signs("broken")] == ["loss at step 1"]
    assert [sign.value for sign in report.cited_signs("fixed")] == ["0.930"], "kept as written"
    assert (report.body.words, report.body.prose_words) == (3, 2)
    assert parse_report("\ufeff" + REPORT.replace("\n", "\r\n")) == report


def test_the_template_says_what_to_fill_in_first() -> None:
    text = report_template()
    for empty in (text, text.replace("\n", "\r\n") + "text\n"):
        with pytest.raises(UserError, match=r"line 4, diagnosis 1: `cause` is not filled in yet: write the id"):
            parse_report(empty)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("where:", "whre:", "line 4, diagnosis 1: there is no key `whre` here: did you mean where?"),
        ("    where: build_optimizer\n", "", "diagnosis 1: `where` is missing: name the function"),
        ("run: fixed", "run: fixd", "line 10, evidence 1: `run` is 'fixd': Input should be 'broken' or 'fixed'"),
        ("step: 1", "step: one", "line 5, diagnosis 1: `step` is 'one': write a whole number, counted from 0"),
        ("step: 1,", "step: 1, epoch: 1,", "one `step` or `epoch`, and a `value`"),
        ("31.84", "high", "`value` is 'high': write a number such as 0.93"),
        ("check: loss_form, ", "", "line 8, ruled_out 2: give a `check` and its `outcome`, or"),
        ("signal: val_accuracy, epoch: 3, value: 0.930", "check: a, outcome: b", "evidence must be a value from a log"),
        ("huge_lr", "[huge_lr]", "`cause`: Input should be a valid string"),
        ("---\n", "", "line 1: a report begins with a line of three dashes"),
        ("cause: huge_lr", "cause: &a huge_lr", "line 3: anchors and aliases"),
        ("cause: huge_lr", "cause: a\n    cause: b", "line 4: `cause` appears twice"),
        ("    where", "   where", "not YAML"),
        ("evidence:\n", "--- a\n", "line 10: the front matter is not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old: str, new: str, message: str) -> None:
    assert old in REPORT
    with pytest.raises(UserError) as error:
        parse_report(REPORT.replace(old, new, 1))
    assert message in str(error.value)
    assert str(error.value).startswith("report.md")


def test_a_front_matter_without_an_end_or_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="the end of the front matter is missing"):
        parse_report(MATTER.removesuffix("---\n"))
    with pytest.raises(UserError, match="cite fewer values"):
        parse_report(REPORT.replace("evidence:", "evidence:" + " " * 20_000))


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    with pytest.raises(UserError, match=r"There is no .*report.md: make exercise"):
        read_report(path)
    path.write_bytes(b"x" * (REPORT_BYTES + 1))
    with pytest.raises(UserError, match="larger than 256 KiB"):
        read_report(path)
