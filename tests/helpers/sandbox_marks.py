"""The mark of tests that need the real sandbox. Without a sandbox, they are skipped, or fail if it is required."""

import functools
import os

import pytest

from grader.sandbox import sandbox_problem

needs_sandbox = pytest.mark.usefixtures("working_sandbox")  # of conftest.py
_problem = functools.cache(sandbox_problem)


def require_sandbox() -> None:
    """If no sandbox starts, skip the calling test, or fail it with `TRAINWRECK_REQUIRE_SANDBOX=1`."""
    found = _problem()
    if found is not None and os.environ.get("TRAINWRECK_REQUIRE_SANDBOX") == "1":
        pytest.fail(found, pytrace=False)
    if found is not None:
        pytest.skip(found)
