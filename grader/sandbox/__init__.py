"""Runs what students sent where it can do no harm: bubblewrap, a seccomp filter, limits, one launcher."""

from grader.sandbox.problem import sandbox_problem
from grader.sandbox.result import Limits, SandboxResult, Status
from grader.sandbox.run import run_in_sandbox
from grader.sandbox.stop import Stopped, StopSignal
from grader.sandbox.trusted import run_trusted

__all__ = [
    "Limits",
    "SandboxResult",
    "Status",
    "StopSignal",
    "Stopped",
    "run_in_sandbox",
    "run_trusted",
    "sandbox_problem",
]
