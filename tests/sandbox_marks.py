"""The mark of tests that need the real sandbox: skipped without it, or failed where the run must have it."""

import functools
import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from grader.sandbox import sandbox_problem

REQUIRED = "TRAINWRECK_REQUIRE_SANDBOX"
Test = TypeVar("Test", bound=Callable[..., object])


@functools.cache
def problem() -> str | None:
    return sandbox_problem()


def require_sandbox() -> None:
    """Skip the test that calls this, or fail it with `TRAINWRECK_REQUIRE_SANDBOX=1`, where no sandbox starts."""
    found = problem()
    if found is None:
        return
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(found, pytrace=False)
    pytest.skip(found)


def needs_sandbox(test: Test) -> Test:
    """Let a test run only where the sandbox works."""

    @functools.wraps(test)
    def checked(*args: object, **kwargs: object) -> object:
        require_sandbox()
        return test(*args, **kwargs)

    return checked  # type: ignore[return-value]
