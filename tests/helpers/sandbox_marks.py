"""The mark of tests that need the real sandbox: skipped without it, or failed if the run must have it."""

import functools
import os

import pytest

from grader.sandbox import sandbox_problem

needs_sandbox = pytest.mark.usefixtures("working_sandbox")  # of conftest.py
_problem = functools.cache(sandbox_problem)


def require_sandbox() -> None:
    """Skip the test that calls this, or fail it with `TRAINWRECK_REQUIRE_SANDBOX=1`, if no sandbox starts."""
    found = _problem()
    if found is not None and os.environ.get("TRAINWRECK_REQUIRE_SANDBOX") == "1":
        pytest.fail(found, pytrace=False)
    if found is not None:
        pytest.skip(found)
