import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.result import BrokenReport, SandboxResult, parse_report
from grader.sandbox.watch import collect


def whole(contents: dict[str, bytes], status: str = "OK", **head: object) -> bytes:
    sizes = [(name, len(content)) for name, content in contents.items()]
    head = {"status": status, "exit_code": 0, "signal": None, "message": "", "seconds": 1, "files": sizes, **head}
    return b"S" + json.dumps(head).encode() + b"\n" + b"".join(contents.values())


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..")
)


@given(st.dictionaries(names, st.binary(max_size=100), max_size=5), st.data())
def test_a_whole_report_is_read_and_one_that_breaks_off_is_not_finished(
    files: dict[str, bytes], data: st.DataObject
) -> None:
    sent = whole(files)
    assert parse_report(sent, 1000) == SandboxResult("OK", 0, files=files, seconds=1)
    assert parse_report(sent[: data.draw(st.integers(0, len(sent) - 1))], 1000) is None


@given(st.binary(max_size=200))
def test_anything_else_is_refused_or_unfinished(data: bytes) -> None:
    for sent in (data, b"S" + data, whole({"a": b"x"})[:-1] + data):
        try:
            report = parse_report(sent, 100)
        except BrokenReport:
            continue
        assert report is None or report.files


@pytest.mark.parametrize("data", [
    whole({}) + b"x", whole({}, "NO"), whole({}, exit_code="0"), whole({}, signal="9"), whole({}, other=1),
    whole({}, seconds=-1), whole({}, seconds=float("nan")), whole({}, files=[["a", -1]]), whole({}, files=[["a"]]),
    whole({"../x": b""}), whole({"/x": b""}), whole({"a//b": b""}), whole({"a\0b": b""}), whole({"a": b"123456"}),
    whole({"a": b"123", "b": b"456"}), whole({}, files=[["a", 1], ["a", 1]]) + b"xy", b"X", b"S\xff\n", b"S[]\n",
    whole({}, message="\udcff"),
])  # fmt: skip
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenReport):
        parse_report(data, 5)


def test_links_and_pipes_are_no_results(tmp_path: Path) -> None:
    out, secret = tmp_path / "out", tmp_path / "secret"
    out.mkdir()
    secret.write_text("of the grader")
    (out / "whole").write_text("x")
    (out / "link").symlink_to(secret)
    (out / "folder").symlink_to(tmp_path)
    os.mkfifo(out / "pipe")
    (tmp_path / "other").symlink_to(out)
    assert (collect(str(out), 10, 10), collect(str(tmp_path / "other"), 10, 10)) == ([("whole", b"x")], [])
