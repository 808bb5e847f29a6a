import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.result import BrokenFrames, Report, parse_frames


def frame(letter: bytes, payload: bytes = b"") -> bytes:
    return letter + len(payload).to_bytes(8, "big") + payload


def whole(files: dict[str, bytes], ending: str = "OK 0 - ") -> bytes:
    parts = [frame(b"S"), frame(b"E", ending.encode())]
    for name, content in files.items():
        parts += [frame(b"N", name.encode()), frame(b"D", content)]
    return b"".join([*parts, frame(b"Z")])


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..")
)


@given(st.dictionaries(names, st.binary(max_size=100), max_size=5))
def test_what_is_sent_is_read(files: dict[str, bytes]) -> None:
    assert parse_frames(whole(files), 1000) == Report(True, True, "OK", 0, None, "", files)


@given(st.dictionaries(names, st.binary(max_size=10), max_size=3), st.data())
def test_a_report_that_breaks_off_is_not_finished(files: dict[str, bytes], data: st.DataObject) -> None:
    sent = whole(files)
    cut = data.draw(st.integers(0, len(sent) - 1))
    assert parse_frames(sent[:cut], 1000).finished is False


@given(st.binary(max_size=200))
def test_anything_else_is_refused_or_unfinished(data: bytes) -> None:
    try:
        report = parse_frames(data, 100)
    except BrokenFrames:
        return
    assert not report.finished


@pytest.mark.parametrize("data", [
    whole({}) + b"x", whole({}, "NO 0 - "), whole({}, "OK"), whole({}, "OK x - "), whole({"../x": b""}),
    whole({"/x": b""}), whole({"a//b": b""}), whole({"a\0b": b""}), whole({"a": b"123456"}),
    whole({"a": b"123", "b": b"456"}), whole({"n" * 4097: b""}), frame(b"Z"), frame(b"S", b"x"),
    frame(b"S") + frame(b"S"), frame(b"S") + frame(b"D", b"x"),
    frame(b"S") + frame(b"E", b"OK 0 - ") + frame(b"N", b"\xff"),
    frame(b"S") + frame(b"E", b"OK 0 - ") + 2 * (frame(b"N", b"a") + frame(b"D")),
    frame(b"S") + b"E" + (2**63).to_bytes(8, "big"),
])  # fmt: skip
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenFrames):
        parse_frames(data, 5)
