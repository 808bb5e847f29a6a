"""Run student code so that it can do no harm: bubblewrap, a seccomp filter, limits, and a launcher."""

from grader.sandbox.bubblewrap import HIDDEN_FROM_STUDENTS, launcher_python
from grader.sandbox.pipes import Stopped, StopSignal
from grader.sandbox.result import MIB, Command, Limits, SandboxResult, Status
from grader.sandbox.run import run_in_sandbox, sandbox_problem
from grader.sandbox.unsandboxed import run_unsandboxed
from grader.sandbox.warm import WarmSandbox

__all__ = [
    "HIDDEN_FROM_STUDENTS",
    "MIB",
    "Command",
    "Limits",
    "SandboxResult",
    "Status",
    "StopSignal",
    "Stopped",
    "WarmSandbox",
    "launcher_python",
    "run_in_sandbox",
    "run_unsandboxed",
    "sandbox_problem",
]
