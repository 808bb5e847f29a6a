from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.submission.student_report import SIZE_LIMIT, StudentReport, parse_report, read_report
from harness.workspace import REPORT_TEMPLATE

HEAD = "---\nroot_cause_layer: optimizer\nevidence:\n"
GOOD = HEAD + "  - {run: broken, signal: grad_norm, step: 4, value: 18234.5}\n"
WHOLE = GOOD + "  - {run: fixed, signal: val_accuracy, epoch: 3, value: 0.930}\n---\n\n# Cause\n\nThe rate.\n"


def test_a_whole_report_is_read() -> None:
    report = parse_report(WHOLE)
    assert report.layer == "optimizer"
    assert (report.word_count, report.prose_words) == (3, 2)
    first, second = report.evidence
    assert (first.run, first.signal, first.step, first.epoch, first.value) == (
        "broken",
        "grad_norm",
        4,
        None,
        "18234.5",
    )
    assert (second.place, second.value) == ("epoch 3", "0.930")


def test_the_specified_example_is_read() -> None:
    text = """---
root_cause_layer: optimizer
evidence:
  - run: broken
    signal: grad_mean.1.weight
    step: 4
    value: "NaN"
---
"""
    assert parse_report(text).evidence[0].value == "NaN"
    assert parse_report(text.replace("\n", "\r\n")) == parse_report(text)


def test_the_empty_template_is_met_kindly() -> None:
    for text in (REPORT_TEMPLATE, REPORT_TEMPLATE.replace("\n", "\r\n") + "\n"):
        with pytest.raises(UserError, match=r"^report\.md is still the empty template: name the layer"):
            parse_report(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (REPORT_TEMPLATE + "text", "line 2: `root_cause_layer` is not filled in yet: name the layer"),
        (REPORT_TEMPLATE.replace("layer:", "layer: loss"), "line 4, evidence 1: `signal` is not filled in"),
        (HEAD + "---\n", "line 3: `evidence` is not filled in yet"),
        (GOOD + "unknown: 1\n---\n", "line 5: there is no key `unknown`: choose from root_cause_layer,"),
        (GOOD.replace("signal", "sginal") + "---\n", "there is no key `sginal`: did you mean signal"),
        (GOOD.replace("signal: grad_norm, ", "") + "---\n", "evidence 1: `signal` is missing: name a"),
        (GOOD.replace("optimizer", "optimiser") + "---\n", "'optimiser': did you mean optimizer"),
        (GOOD.replace("optimizer", "[loss]") + "---\n", "`root_cause_layer` must be one word"),
        (GOOD.replace("broken", "healthy") + "---\n", "`run` is 'healthy': choose from broken, fixed"),
        (GOOD.replace("18234.5", "18,234.5") + "---\n", "`234.5` stands alone: write numbers without commas"),
        (GOOD.replace("18234.5", "large") + "---\n", "`value` must be a number such as .*, not 'large'"),
        (GOOD.replace("18234.5", "[1]") + "---\n", "`value` must be a number"),
        (GOOD.replace("step: 4", "step: -4") + "---\n", "`step` must be a whole number, .*, not '-4'"),
        (GOOD.replace("step: 4", "step: 4.0") + "---\n", "`step` must be a whole number"),
        (GOOD.replace("step: 4, ", "") + "---\n", "evidence 1: needs either `step` or `epoch`, and not both"),
        (GOOD.replace("step: 4", "step: 4, epoch: 1") + "---\n", "either `step` or `epoch`"),
        (GOOD.replace("grad_norm", "[x]") + "---\n", "`signal` must be one word"),
        (GOOD.replace("grad_norm", "x" * 201) + "---\n", "`signal` must be the name of one signal"),
        (HEAD + "  - text\n---\n", "evidence 1: it must be of the form"),
        (HEAD.replace("evidence:", "evidence: 3") + "---\n", "`evidence` must be a list"),
        ("---\nevidence: []\n---\n", "`root_cause_layer` is missing"),
        (WHOLE + "```\n", "the code block that begins here does not end"),
    ],
)  # fmt: skip
def test_an_error_says_what_where_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(UserError, match=r"^report\.md, line \d+") as caught:
        parse_report(text)
    assert caught.match(message)
    assert "\n" not in str(caught.value)


def test_a_report_of_500_words_passes_and_one_more_does_not() -> None:
    text = GOOD + "---\n" + "word " * 500
    parse_report(text).require_length("report.md")
    report = parse_report(text + "more")
    with pytest.raises(
        UserError, match=r"report\.md: the report has 501 words, and 500 are allowed: leave out 1 "
    ):
        report.require_length("report.md")


PIECES = st.sampled_from(
    [
        *(
            "---\n",
            "\n",
            "root_cause_layer: ",
            "optimizer",
            "evidence:",
            "  - ",
            "{",
            "}",
            ", ",
            "run: broken",
        ),
        *(
            "signal: loss",
            "step: 1",
            "epoch: 2",
            "value: ",
            "0.93",
            "NaN",
            "[",
            "]",
            "&a ",
            "*a",
            "!!int ",
            "<<: ",
        ),
        *(
            "'",
            '"',
            "|",
            "> ",
            "# ",
            "? ",
            ": ",
            "```\n",
            "| a |",
            "\\U00110000",
            "%YAML 1.1\n",
            "\x00",
            "\ud800",
        ),
    ]
)


@given(
    st.text() | st.lists(PIECES, max_size=40).map("".join) | st.lists(PIECES).map(lambda p: HEAD + "".join(p))
)
@example("---\n? \n---")
@example("---\n!\n---")
@example("---\n=: 1\n---")
@example("---\n1: 1\nevidence: [null]\n---")
def test_any_text_is_a_report_or_a_users_error(text: str) -> None:
    try:
        report = parse_report(text)
    except UserError as error:
        assert str(error).startswith("report.md") and str(error).isprintable()
    else:
        assert isinstance(report, StudentReport)
        assert report.word_count >= report.prose_words >= 0


@given(st.binary())
def test_any_bytes_are_a_report_or_a_users_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "report.md"
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"report\.md"):
        read_report(path)


def test_a_file_that_cannot_be_read_is_a_users_error(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    with pytest.raises(UserError, match="There is no report at"):
        read_report(path)
    path.write_bytes(b"---\n\xff")
    with pytest.raises(UserError, match="line 2: not UTF-8"):
        read_report(path)
    path.write_bytes(b"-" * (SIZE_LIMIT + 1))
    with pytest.raises(UserError, match="larger than 1024 KiB"):
        read_report(path)
    path.write_text(WHOLE)
    assert read_report(path).layer == "optimizer"
