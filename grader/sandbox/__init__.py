"""Run student code safely, with bubblewrap, a seccomp filter, limits, and a process that enforces the limits."""

from grader.sandbox.bubblewrap import HIDDEN_FROM_STUDENTS, base_python, running_python
from grader.sandbox.engine import ForkingSandbox, run_in_sandbox, sandbox_problem
from grader.sandbox.pipes import SandboxStopped, StopSignal
from grader.sandbox.result import MIB, Interpreter, Limits, SandboxCommand, SandboxResult
from grader.sandbox.unsandboxed import run_unsandboxed
from grader.sandbox.watch import RunStatus

__all__ = [
    "HIDDEN_FROM_STUDENTS",
    "MIB",
    "ForkingSandbox",
    "Interpreter",
    "Limits",
    "RunStatus",
    "SandboxCommand",
    "SandboxResult",
    "SandboxStopped",
    "StopSignal",
    "base_python",
    "run_in_sandbox",
    "run_unsandboxed",
    "running_python",
    "sandbox_problem",
]
