"""What the fuzzing would find: other exceptions, hangs, answers that change, refusals that nobody can read."""

import itertools
import random
from collections.abc import Callable

import fuzzing
import pytest
from fuzzing import Hung, mutated, outcome
from hypothesis import given

_count = itertools.count()


def refuses(words: str) -> Callable[[], object]:
    def refuse() -> object:
        raise ValueError(words)

    return refuse


def test_a_result_comes_back_and_a_refusal_is_none() -> None:
    assert outcome(lambda: random.random()) == outcome(lambda: random.random())
    assert outcome(refuses("why"), ValueError) is None
    assert outcome(refuses("x" * 9999), ValueError, strangers=False) is None


@pytest.mark.parametrize("words", ["x" * 9999, "\x1b[31m", "\u202e"])
def test_a_refusal_that_nobody_can_read_is_found(words: str) -> None:
    with pytest.raises(AssertionError):
        outcome(refuses(words), ValueError)


def test_what_is_no_refusal_goes_through() -> None:
    with pytest.raises(ValueError, match="why"):
        outcome(refuses("why"), KeyError)
    with pytest.raises(AssertionError):
        outcome(lambda: next(_count))


def test_a_hang_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "_HANG_SECONDS", 0.05)
    with pytest.raises(Hung):
        outcome(lambda: [None for _ in itertools.repeat(0)])


@given(mutated((b"a whole file", b"another"), (b"{", b"[[")))
def test_what_is_made_is_bounded(data: bytes) -> None:
    assert len(data) <= 200_000
