"""The end of a sandboxed command: every status, from real processes with small limits."""

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.sandbox_marks import needs_sandbox
from helpers.sandboxed import (
    SMALL,
    engine,  # noqa: F401 - a fixture
    running,
    sandboxed,
)

from grader.sandbox import Interpreter, SandboxCommand, bubblewrap, run_in_sandbox, sandbox_problem
from grader.sandbox import engine as engine_module
from grader.sandbox.watch import memory_of, usage

in_both_engines = pytest.mark.usefixtures("engine")


@needs_sandbox
@in_both_engines
def test_inputs_lie_beside_the_scratch_folder_and_cannot_be_changed() -> None:
    code = """
import os
print(open('../input/deep/name').read(), open('/input/deep/name').read(), os.getcwd())
for path in ('/input/deep/name', '/input/new', '/new', '/usr/new', '/launcher.py', '/etc/passwd', '/proc/1/comm'):
    try:
        open(path, 'w')
        print('written', path)
    except OSError as error:
        pass
"""
    result = sandboxed(code, inputs={"deep/name": b"content"})
    assert result.stdout == b"content content /scratch\n", result


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../x", "a//b", "./a", "a/"])
def test_an_input_or_a_visible_path_that_is_not_plain_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain path"):
        sandboxed("", inputs={name: b""})
    with pytest.raises(ValueError, match="not absolute"):
        sandboxed("", visible=[Path("harness")])


@needs_sandbox
def test_what_cannot_be_started_is_our_fault(tmp_path: Path) -> None:
    result = run_in_sandbox(SandboxCommand(tmp_path, Interpreter(("/no/such/python",))))
    assert (result.status, "/no/such/python" in result.message) == ("XX", True)
    result = sandboxed("", visible=[tmp_path / "missing"])
    assert (result.status, "missing" in result.message) == ("XX", True)


FILL = "n = 0\nwhile True:\n  n += 1\n  open(f'/scratch/{n}', 'wb').write(bytes(2 ** 20))"
TOO_LARGE = "open('big', 'wb').write(bytes(5 * 2 ** 20))"
# Each child lives for less time than the interval between two checks. Together, they use 6 seconds of processor time.
SHORT_LIVES = """
import contextlib, ctypes, os, signal, struct, time
with contextlib.suppress(OSError):
    {ignoring}
for _ in range(600):
    if os.fork() == 0:
        started = time.process_time()
        while time.process_time() < started + 0.01: pass
        os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.wait()
"""
# sigaction with SA_NOCLDWAIT: struct kernel_sigaction is handler, flags, restorer, mask.
NO_WAIT = (
    "ctypes.CDLL(None).syscall({'x86_64': 13, 'aarch64': 134}[os.uname().machine], 17,"
    " struct.pack('4Q', 0, 2, 0, 0), 0, 8)"
)
THREADS = (
    "import threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(60,)).start()\n"
    "  except RuntimeError: time.sleep(1)"
)
CPU, MEMORY, MANY = ("it used up its processor time", "it used more than 200 MiB", "it started more than 20 proc")
ENDINGS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "busy": ("while True: pass", {"seconds": 0.5}, "TO", CPU),
    "children": (SHORT_LIVES.format(ignoring="pass"), {"seconds": 1, "processes": 1000}, "TO", CPU),
    "children that vanish": (
        SHORT_LIVES.format(ignoring=NO_WAIT), {"seconds": 1, "processes": 1000}, "TO", CPU
    ),
    "output": ("while True: print('x' * 1000)", {}, "OL", "it wrote more than 100000 bytes"),
    "scratch": (FILL, {}, "OL", "filled /scratch"),
    "killed by file": (
        f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); {TOO_LARGE}", {}, "OL", "larger than"
    ),
    "files": (
        "import time\nfor n in range(200): open(str(n), 'w')\ntime.sleep(60)", {}, "OL", "more than 100 files"
    ),
    "results": ("open('out/big', 'wb').write(bytes(3 * 2 ** 20))", {}, "OL", "larger than allowed"),
    "deep results": ("import os; p = 'out'\nfor _ in range(20): p += '/d'; os.mkdir(p)", {}, "OL", "too deeply"),
    "odd name": ("open(b'out/\\xff', 'w')", {}, "OL", "not UTF-8"),
    "memory": ("kept = []\nwhile True: kept.append(bytearray(2 ** 20))", {}, "ML", MEMORY),
    "forks": ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", {}, "ML", MANY),
    "threads": (THREADS, {}, "ML", MANY),
}  # fmt: skip


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize(("code", "limits", "status", "message"), ENDINGS.values(), ids=ENDINGS)
def test_what_exceeds_a_limit_is_ended_and_leaves_nothing(
    code: str, limits: dict[str, Any], status: str, message: str
) -> None:
    result = sandboxed(code, replace(SMALL, **limits))
    assert (result.status, message in result.message, result.files) == (status, True, {}), result
    assert max(len(result.stdout), len(result.stderr)) <= SMALL.output_bytes


def test_a_look_does_not_count_all_processes_of_a_run_that_has_too_many() -> None:
    """The kernel does not limit root's processes. When each check counted all, a fork bomb made 32,000 of them."""
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(20)]
    try:
        seen, every = usage(1, "")[0], usage(10**6, "")[0]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    assert seen > 1
    assert seen <= every - 10


DEEP = """
import os
folder = os.open(".", os.O_RDONLY)
for n in range({count}):
    os.mkdir("{name}", dir_fd=folder)
    folder, above = os.open("{name}", os.O_RDONLY, dir_fd=folder), folder
    os.close(above)
raise SystemExit(1)
"""


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize(("code", "status", "exit_code", "number"), [
    ("raise SystemExit(7)", "RE", 7, None), ("import os; os.kill(os.getpid(), 9)", "SG", None, 9),
    ("import os; os.kill(os.getpid(), 11)", "SG", None, 11),
    # A strange scratch folder is not the grader's fault.
    ("import os; open('out/file', 'w'); os.chmod('out', 0o400); raise SystemExit(1)", "RE", 1, None),
    (DEEP.format(name="d", count=900), "RE", 1, None), (DEEP.format(name="d" * 200, count=90), "RE", 1, None),
    ("open(b'\\xff\\n', 'w'); raise SystemExit(1)", "RE", 1, None),
])  # fmt: skip
def test_a_command_that_ends_by_itself_says_how_and_brings_its_files(
    code: str, status: str, exit_code: int | None, number: int | None
) -> None:
    result = sandboxed(f"open('out/note', 'w').write('why')\n{code}", replace(SMALL, scratch_files=1000))
    assert (result.status, result.exit_code, result.signal) == (status, exit_code, number)
    assert result.files["note"] == b"why"


@needs_sandbox
@in_both_engines
def test_a_sleeper_runs_out_of_time_and_is_gone() -> None:
    name = f"sleeper-{os.getpid()}"
    code = "print('here', flush=True); import time; time.sleep(3600)"
    result = sandboxed(code, replace(SMALL, seconds=1), name=name)
    assert (result.status, result.message, result.stdout) == ("TO", "it slept too long", b"here\n")
    assert running(name) == []


def test_memory_is_what_was_allocated_wherever_it_is_now() -> None:
    lines = (b"Name:\tRssAnon: 9 kB", b"VmRSS:\t 900 kB", b"RssAnon:\t 3 kB", b"RssFile:\t 800 kB", b"VmPTE:\t 20 kB",
             b"VmSwap:\t 100 kB", b"Threads:\t1")  # fmt: skip
    assert memory_of(b"\n".join(lines)) == 123 * 1024
    assert memory_of(b"Name:\tpython\nState:\tZ (zombie)\n") == 0


@needs_sandbox
def test_the_kernel_takes_it_first_when_the_machine_is_full() -> None:
    assert sandboxed("print(open('/proc/self/oom_score_adj').read(), end='')").stdout == b"1000\n"


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize("code", [
    "import os; os.rmdir('out'); open('out', 'w').write('a file')", "import os; os.rmdir('out')",
    "import os; os.chmod('out', 0); os.chmod('.', 0)",
])  # fmt: skip
def test_a_result_folder_that_is_none_brings_nothing(code: str) -> None:
    result = sandboxed(code, inputs={"secret": b"of the grader"})
    assert (result.status, result.files) == ("OK", {})


@needs_sandbox
@in_both_engines
def test_sandboxes_work_side_by_side_and_leave_nothing_open() -> None:
    def descriptors() -> list[str]:
        gc.collect()  # collect open files of earlier tests in reference cycles
        return sorted(path.name for path in Path("/proc/self/fd").iterdir())

    sandboxed("")
    before = descriptors()
    with ThreadPoolExecutor(4) as pool:
        codes = [f"open('out/mine', 'w').write('{number}' * 1000)" for number in range(8)]
        results = list(pool.map(sandboxed, codes))
    assert [result.files for result in results] == [{"mine": b"%d" % number * 1000} for number in range(8)]
    late = sandboxed("import time; time.sleep(60)", replace(SMALL, wall_seconds=0))
    assert late.status == "XX"
    sandboxed("while True: print('x' * 1000)")
    assert descriptors() == before


@pytest.mark.parametrize(("where", "status"), [(">&-", 0), (">/dev/full", 2)], ids=["closed", "full"])
@needs_sandbox
def test_whether_anybody_reads_the_output_a_class_is_scored(where: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada_huge_lr.tar.gz").write_bytes(b"")
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -P -m grader score submissions --out reports {where}"],
        cwd=tmp_path,
        env={**os.environ, "TRAINWRECK_REPLAYS": str(tmp_path / "replays")},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, "at standard output" in done.stderr) == (status, status == 2), done.stderr
    assert (tmp_path / "reports" / "scores.json").exists()


BROKEN_BWRAP = 'test "$1" = --version && echo bubblewrap 0.8.0 && exit\necho no namespaces >&2; exit 1'


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (None, "bubblewrap, which is not installed: install the package bubblewrap"),
        ("echo bubblewrap 0.4.1", "bubblewrap 0.7.0 or later, but this is 0.4.1: install"),
        (BROKEN_BWRAP, "a sandbox does not start on this machine (the sandbox did not start: no namespaces): "),
    ],
)
def test_a_bubblewrap_that_does_not_work_is_told(
    program: str | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "bwrap_version", bubblewrap.bwrap_version.__wrapped__)
    if program is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if program == BROKEN_BWRAP else str(tmp_path))
    assert problem in (sandbox_problem() or "")


def test_another_system_and_another_processor_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "no filter for riscv64 processors" in (sandbox_problem() or "")
    monkeypatch.setattr("sys.platform", "darwin")
    assert "The sandbox needs Linux" in (sandbox_problem() or "")
