"""Mutate valid files (flip, cut, splice, repeat, nest) and call a function on them."""

import random
import signal
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st

# hypothesis warns about long inputs, but here long inputs are allowed.
LARGE = pytest.mark.filterwarnings("ignore:Generating overly large repr")
Result = TypeVar("Result")
_LONGEST = 200_000  # bytes of a mutated file
# Seconds of processor time. The slowest known inputs, each at its size limit, take 3 s.
_HANG_SECONDS = 30.0
_MOST_COPIES = 3_000  # of a token in a row, for deep nesting of brackets


class Hung(Exception):
    """The call used more processor time than any input of this size should need."""


def examples(share: float) -> settings:
    """Return settings for a slower test, which runs this share of the usual number of examples."""
    ordinary = settings.default
    assert ordinary is not None
    return settings(max_examples=max(1, round(ordinary.max_examples * share)))


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Return one of the seeds with a few random changes that often break parsers."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.sampled_from((1, 2, 7, 50, 1000))))
        match draw(st.integers(0, 8)):
            case 0 if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del data[at:]
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end]
            case 4:
                other = draw(st.sampled_from(seeds))
                data[at:] = other[draw(st.integers(0, len(other))) :]
            case 5 | 6:
                data[at:end] = draw(st.sampled_from(tokens))
            case 7:
                token = draw(st.sampled_from(tokens))
                copies = draw(st.sampled_from((2, 20, 300, _MOST_COPIES)))
                data[at:at] = token * min(copies, _LONGEST // max(1, len(token)))
            case _:
                data[at:at] = draw(st.binary(max_size=8))
    return bytes(data[:_LONGEST])


def mutated_text(seeds: Sequence[str], tokens: Sequence[str]) -> st.SearchStrategy[str]:
    """Return mutated texts. Bytes that are no longer UTF-8 become replacement characters."""
    of_bytes = mutated([seed.encode() for seed in seeds], [token.encode("utf-8", "replace") for token in tokens])
    return of_bytes.map(lambda data: data.decode("utf-8", "replace"))


def outcome(call: Callable[[], Result], *refusals: type[Exception], strangers: bool = True) -> Result | None:
    """Call a function twice. Return its result, or None if it raised one of `refusals`. Both calls must agree.

    Any other exception, also `Hung`, is a bug and is not caught. strangers: the input is untrusted, so a refusal must
    be short and printable.
    """
    first, second = (_once(call, refusals) for _ in range(2))
    assert repr(first) == repr(second)
    result, refusal = first
    if refusal is not None and strangers:
        assert len(refusal) <= 1500, refusal[:2000]
        assert all(line.isprintable() for line in refusal.split("\n")), ascii(refusal)
    return result


def _once(call: Callable[[], Result], refusals: tuple[type[Exception], ...]) -> tuple[Result | None, str | None]:
    random.seed(0)
    before = signal.signal(signal.SIGPROF, _hung)
    signal.setitimer(signal.ITIMER_PROF, _HANG_SECONDS)
    try:
        return call(), None
    except refusals as error:
        return None, str(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _hung(number: int, frame: object) -> NoReturn:
    raise Hung
