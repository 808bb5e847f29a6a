import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.sandboxed import running, script

from grader.sandbox import Interpreter, Limits, SandboxCommand, SandboxResult, run_unsandboxed

SMALL = Limits(seconds=10, wall_seconds=20, file_bytes=2**20, output_bytes=10_000, result_bytes=2**20, scratch_files=50)


def trusted(
    code: str, limits: Limits = SMALL, inputs: Mapping[str, bytes] | None = None, name: str = "script"
) -> SandboxResult:
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        interpreter = Interpreter((sys.executable, "-I", "-S"), {"ONE": "1"})
        return run_unsandboxed(SandboxCommand(script(Path(folder), code), interpreter, inputs or {}, limits))


def test_it_has_the_folders_and_the_environment_of_the_sandbox() -> None:
    code = """
import os, sys
open('out/result', 'w').write(open('../input/deep/name').read() + sys.stdin.read())
print(sorted(name for name in os.environ if name != 'LC_CTYPE'), os.listdir('.'))
"""
    result = trusted(code, inputs={"deep/name": b"content"})
    assert (result.status, result.exit_code) == ("OK", 0), result
    assert (result.stdout, result.files) == (b"['ONE'] ['out']\n", {"result": b"content"})


def test_it_leaves_nothing_on_disk() -> None:
    place = Path(trusted("import os; print(os.getcwd())").stdout.decode().strip())
    assert place.name == "scratch"
    assert not place.parent.exists()


@pytest.mark.parametrize(("code", "status", "exit_code", "number"), [
    ("raise SystemExit(3)", "RE", 3, None), ("import os; os.kill(os.getpid(), 11)", "SG", None, 11),
    ("while True: print('x' * 1000)", "OL", None, None),
    ("open('big', 'wb').write(bytes(2 * 2 ** 20))", "RE", 1, None),
    ("for number in range(60): open(f'out/{number}', 'w')", "OL", 0, None),
    ("bytearray(2 ** 40)", "RE", 1, None),
])  # fmt: skip
def test_the_ending_is_told(code: str, status: str, exit_code: int | None, number: int | None) -> None:
    result = trusted(code)
    assert (result.status, result.exit_code, result.signal) == (status, exit_code, number)


@pytest.mark.parametrize("code", [
    "while True: pass", "import os, time; os.closerange(0, 3); time.sleep(3600)",
], ids=["busy", "with closed output"])  # fmt: skip
def test_time_runs_out_and_it_is_gone(code: str) -> None:
    name = f"trusted-{os.getpid()}"
    assert trusted(code, replace(SMALL, wall_seconds=0.5), name=name).status == "TO"
    assert running(name) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the figure is Linux's")
def test_the_kernel_takes_it_before_the_grader() -> None:
    assert trusted("print(open('/proc/self/oom_score_adj').read(), end='')").stdout == b"1000\n"
