"""Mutated logs and reports: accepted, or refused with a sentence, and shown as harmless pages."""

import re
from html.parser import HTMLParser

from helpers.fuzzing import LARGE, examples, mutated_text, outcome
from helpers.recorded_logs import log_bytes, recorded_evidence
from hypothesis import given
from hypothesis import strategies as st

from grader.report.markdown import shown_report
from harness.errors import UserError
from harness.run.metrics_log import batch_records, epoch_records, log_lines, parse_log
from harness.submission.document import visible
from harness.submission.report import parse_report

pytestmark = LARGE
_LOGS = tuple(
    b"".join(log_bytes(name).splitlines(keepends=True)[at]).decode()
    for name in ("huge_lr", "digits_heat", "amp_no_scaling")
    for at in (slice(3), slice(-3, None))
)
_LOG_TOKENS = (
    "{", "}", "[", "]", '"', ":", ",", "\n", "null", "true", '"NaN"', "NaN", '"Infinity"', "1e999", "-1", "1" * 400,
    "9" * 5000, '"step": ', '"loss": ', '{"a":', "\u2028", "\0", "\ufeff", '"\\ud800"', '{"step": 0}', "0.0",
    '"activations": {"first": {"mean": [1]}}',
)  # fmt: skip
_REPORTS = tuple(recorded_evidence(name).report or "" for name in ("huge_lr", "double_softmax"))
_YAML_TOKENS = (
    "---", "\n---\n", "- ", "? ", ": ", "{", "}", "[", "]", "&a ", "*a", "!!python/object:os.system ", "!", "|", ">",
    "'", '"', "#", "%YAML 1.2", "%TAG ! x", "\t", "\r\n", "\u2028", "\ufeff", "\x85", '"\\U00110000"', "<<: ",
    "evidence:", "diagnosis:", "first_wrong: ", "check: ", "value: 1e999", "- {run: fixed, ", "[" * 30, "{a: " * 10,
    "2026-01-01", "0x" + "f" * 200, "1:2:3", "\0", "\u202e",
)  # fmt: skip
_PROSE_TOKENS = (
    "# ", "## Root cause\n", "**", "_", "`", "```\n", "~~~", "| a | b |\n| - | - |\n", "|", "> ", "1. ", "- ", "![",
    "](", "<script>alert(1)</script>", "<!--", "&lt;", "[x]: javascript:alert(1)\n", "data:image/svg+xml,",
    "data:image/png;base64," + "A" * 100, "\\", "10^", "1e999", "²³", "%", "0." + "3" * 300, "`loss` is 3.2 at step 7 ",
    ". ", ", ", "; ", "\u202e", "é", "学习率", "\0", "\n\n", "1,000,000 ", "-", "+/- ",
)  # fmt: skip


@given(st.one_of(mutated_text(_LOGS, _LOG_TOKENS), st.text(max_size=50)))
@examples(1.0)
def test_a_log_is_read_or_refused(text: str) -> None:
    records = outcome(lambda: parse_log(text, "metrics.log"), UserError)
    if records is not None:
        assert len(batch_records(records)) + len(epoch_records(records)) == len(log_lines(text))


@given(st.one_of(mutated_text(_REPORTS, _YAML_TOKENS), st.text(max_size=50).map("---\n{}\n---\n".format)))
@examples(0.5)
def test_front_matter_is_read_or_refused(text: str) -> None:
    outcome(lambda: parse_report(text, "report.md"), UserError)


class _Tags(HTMLParser):
    """Collects tags, handlers and addresses that could run code or load a resource."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "iframe", "object", "embed", "svg", "form", "base", "link", "meta"):
            self.found.append(tag)
        for name, value in attrs:
            harmless = name in ("scope", "alt", "start", "rel") or re.match(
                "https?:|mailto:|data:image/", value or "", re.I
            )
            if not harmless:
                self.found.append(f"{tag} {name}={value}")


@given(mutated_text(_REPORTS, (*_PROSE_TOKENS, *_YAML_TOKENS)))
@examples(0.25)
def test_a_report_is_shown_and_nothing_in_it_acts(text: str) -> None:
    shown = outcome(lambda: shown_report(text))
    assert shown is not None
    tags = _Tags()
    tags.feed(str(shown.body))
    assert not tags.found
    assert visible(str(shown.body)) == str(shown.body)
