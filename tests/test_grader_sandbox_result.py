import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.result import BrokenReport, SandboxResult, parse_report


def whole(files: dict[str, bytes], ending: str = "OK 0 - ") -> bytes:
    parts = (f"{len(content)} {name}\0".encode() + content for name, content in files.items())
    return b"".join([b"S", ending.encode(), b"\0", *parts, b"\0"])


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..")
)


@given(st.dictionaries(names, st.binary(max_size=100), max_size=5), st.data())
def test_a_whole_report_is_read_and_one_that_breaks_off_is_not_finished(
    files: dict[str, bytes], data: st.DataObject
) -> None:
    sent = whole(files)
    assert parse_report(sent, 1000) == SandboxResult("OK", 0, files=files)
    assert parse_report(sent[: data.draw(st.integers(0, len(sent) - 1))], 1000) is None


@given(st.binary(max_size=200))
def test_anything_else_is_refused_or_unfinished(data: bytes) -> None:
    for sent in (data, b"S" + data, b"SOK 0 - \0" + data):
        try:
            report = parse_report(sent, 100)
        except BrokenReport:
            continue
        assert report is None or sent == b"SOK 0 - \0\0" or report.files


@pytest.mark.parametrize("data", [
    whole({}) + b"x", whole({}, "NO 0 - "), whole({}, "OK"), whole({}, "OK x - "), whole({"../x": b""}),
    whole({"/x": b""}), whole({"a//b": b""}), whole({"a": b"123456"}), whole({"a": b"123", "b": b"456"}),
    whole({"n" * 2**16: b""}), b"X", b"SOK 0 - \0\xff\0", b"SOK 0 - \0-1 a\0\0", b"SOK 0 - \0a\0\0",
    b"SOK 0 - \0" + "\u0663 a\0abc\0".encode(), b"SOK 0 - \0" + 2 * b"1 a\0x" + b"\0",
    b"SOK 0 - \0" + b"9" * 13 + b" a\0",
])  # fmt: skip
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenReport):
        parse_report(data, 5)
