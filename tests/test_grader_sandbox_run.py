"""How a sandboxed command ends: every status, from real processes under small limits."""

import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from commands import wait_until
from sandbox_marks import needs_sandbox
from sandboxed import (
    MIB,
    SMALL,
    engine,  # noqa: F401 - a fixture
    running,
    sandboxed,
)

from grader.sandbox import bubblewrap, run_in_sandbox, sandbox_problem
from grader.sandbox import run as run_module
from grader.sandbox.inside import memory_of

in_both_engines = pytest.mark.usefixtures("engine")


@needs_sandbox
@in_both_engines
def test_a_command_that_ends_well_brings_back_its_output_and_its_files() -> None:
    code = "import os; print('hi'); os.makedirs('out/a/b'); open('out/a/b/c', 'wb').write(bytes(range(256)))"
    result = sandboxed(code)
    assert (result.status, result.exit_code, result.signal, result.message) == ("OK", 0, None, "")
    assert (result.stdout, result.stderr) == (b"hi\n", b"")
    assert result.files == {"a/b/c": bytes(range(256))}


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
def test_an_input_that_is_no_plain_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain path"):
        sandboxed("", inputs={name: b""})


def test_a_visible_path_that_is_not_absolute_is_refused() -> None:
    with pytest.raises(ValueError, match="not absolute"):
        sandboxed("", visible=[Path("harness")])


@needs_sandbox
@in_both_engines
def test_standard_input_is_what_was_given_however_long() -> None:
    result = sandboxed("import sys; print(len(sys.stdin.buffer.read()))", stdin=b"x" * 3 * MIB)
    assert result.stdout == b"%d\n" % (3 * MIB)


@needs_sandbox
@in_both_engines
def test_an_exit_status_is_told_with_what_was_left() -> None:
    result = sandboxed("open('out/note', 'w').write('why'); raise SystemExit(7)")
    assert (result.status, result.exit_code, result.files) == ("RE", 7, {"note": b"why"})


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize("number", [9, 11, 15])
def test_a_signal_is_told(number: int) -> None:
    result = sandboxed(f"import os; os.kill(os.getpid(), {number})")
    assert (result.status, result.exit_code, result.signal) == ("SG", None, number)


@needs_sandbox
def test_a_command_that_is_not_there_is_our_fault() -> None:
    result = run_in_sandbox(["/no/such/program"], inputs={}, environment={}, limits=SMALL)
    assert result.status == "XX"
    assert "/no/such/program could not be started" in result.message


@needs_sandbox
def test_a_sandbox_that_cannot_be_built_is_our_fault(tmp_path: Path) -> None:
    result = sandboxed("", visible=[tmp_path / "missing"])
    assert result.status == "XX"
    assert "missing" in result.message


@needs_sandbox
@in_both_engines
def test_a_busy_loop_runs_out_of_processor_time() -> None:
    result = sandboxed("while True: pass", replace(SMALL, cpu_seconds=0.5))
    assert (result.status, result.message) == ("TO", "it used up its processor time")


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize(
    "ignoring",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        # sigaction with SA_NOCLDWAIT: struct kernel_sigaction is handler, flags, restorer, mask.
        "ctypes.CDLL(None).syscall({'x86_64': 13, 'aarch64': 134}[os.uname().machine], 17,"
        " struct.pack('4Q', 0, 2, 0, 0), 0, 8)",
        "pass",
    ],
    ids=["ignored", "not waited for", "waited for"],
)
def test_processor_time_is_summed_over_processes_alive_and_ended(ignoring: str) -> None:
    code = f"""
import contextlib, ctypes, os, signal, struct, time
with contextlib.suppress(OSError):
    {ignoring}
# Each lives shorter than the time between two looks; 6 seconds of processor in all.
for _ in range(600):
    if os.fork() == 0:
        started = time.process_time()
        while time.process_time() < started + 0.01: pass
        os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.wait()
"""
    result = sandboxed(code, replace(SMALL, cpu_seconds=1, processes=1000))
    assert (result.status, result.message) == ("TO", "it used up its processor time")


@needs_sandbox
@in_both_engines
def test_a_sleeper_runs_out_of_time_and_is_gone() -> None:
    name = f"sleeper-{os.getpid()}"
    code = f"print('here', flush=True); {name!r}; import time; time.sleep(3600)"
    result = sandboxed(code, replace(SMALL, wall_seconds=1))
    assert (result.status, result.stdout) == ("TO", b"here\n")
    assert running(name) == []


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_of_output_is_stopped_and_cut(stream: str) -> None:
    result = sandboxed(f"import sys\nwhile True: sys.{stream}.write('x' * 1000)")
    assert result.status == "OL"
    assert len(getattr(result, stream)) == SMALL.output_bytes


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize("folder", ["/scratch", "/tmp", "/dev/shm"])
def test_a_full_disk_is_an_output_limit(folder: str) -> None:
    code = f"""
number = 0
while True:
    number += 1
    open(f'{folder}/{{number}}', 'wb').write(bytes(2 ** 20))
"""
    result = sandboxed(code)
    assert (result.status, result.files) == ("OL", {})
    assert f"filled {folder}" in result.message


@needs_sandbox
@in_both_engines
def test_one_file_that_is_too_large_is_an_output_limit() -> None:
    result = sandboxed("open('big', 'wb').write(bytes(5 * 2 ** 20))")
    assert (result.status, result.message) == ("OL", "it wrote a file larger than is allowed")
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('big', 'wb').write(bytes(5 * 2 ** 20))"
    assert sandboxed(code).status == "OL"


@needs_sandbox
@in_both_engines
def test_too_many_files_are_an_output_limit() -> None:
    code = "import time\nfor number in range(200): open(str(number), 'w')\ntime.sleep(60)"
    result = sandboxed(code)
    assert (result.status, result.message) == ("OL", "it made more than 100 files in /scratch")


@needs_sandbox
@in_both_engines
def test_results_that_are_too_large_are_an_output_limit() -> None:
    result = sandboxed("open('out/big', 'wb').write(bytes(3 * 2 ** 20))")
    assert (result.status, result.files) == ("OL", {})


@needs_sandbox
@in_both_engines
def test_memory_is_limited_for_all_processes_together() -> None:
    code = "kept = []\nwhile True: kept.append(bytearray(2 ** 20))"
    result = sandboxed(code)
    assert (result.status, result.message) == ("ML", "it used more than 200 MiB of memory")
    together = """
import os, time
for _ in range(4):
    if os.fork() == 0: break
kept = bytearray(b'x') * (60 * 2 ** 20)
time.sleep(60)
"""
    assert sandboxed(together).status == "ML"


@needs_sandbox
@in_both_engines
def test_page_tables_count_as_memory() -> None:
    # Looking at memory that nobody fills costs the kernel 4 KiB for every 2 MiB looked at: 512 MiB here.
    code = """
import mmap, time
place = mmap.mmap(-1, 2 ** 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
for position in range(0, 2 ** 38, 2 ** 21): place[position]
time.sleep(60)
"""
    result = sandboxed(code)
    assert (result.status, result.message) == ("ML", "it used more than 200 MiB of memory")


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
    "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "import threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(60,)).start()\n"
    "  except RuntimeError: time.sleep(1)",
], ids=["processes", "threads"])  # fmt: skip
def test_a_fork_bomb_is_bounded(code: str) -> None:
    result = sandboxed(code)
    assert (result.status, result.message) == ("ML", "it started more than 20 processes")


@needs_sandbox
@in_both_engines
def test_nothing_outlives_the_command(tmp_path: Path) -> None:
    # A daemon of two forks and a session of its own, which holds no pipe; its name is looked for outside.
    name = f"survivor-{os.getpid()}"
    code = f"""
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3): os.close(number)
        os.execv({str(Path("/bin/sh").resolve())!r}, ['{name}', '-c', 'while : ; do sleep 1; done'])
    os._exit(0)
os.wait()
import time; time.sleep(0.3)
"""
    assert sandboxed(code).status == "OK"
    assert running(name) == []


@needs_sandbox
@in_both_engines
def test_the_launcher_cannot_be_killed_stopped_or_interrupted() -> None:
    code = """
import os, signal
for number in range(1, 65):
    if number not in (32, 33):
        try:
            os.kill(1, number)
        except PermissionError:  # Landlock keeps signals from whoever is outside its domain
            pass
try:
    os.kill(-1, signal.SIGTERM)
except (ProcessLookupError, PermissionError):
    open('out/alone', 'w').write('here')
"""
    result = sandboxed(code)
    assert (result.status, result.files) == ("OK", {"alone": b"here"}), result


@needs_sandbox
@in_both_engines
def test_only_regular_files_of_the_results_come_out() -> None:
    code = """
import os
os.symlink('/etc/passwd', 'out/link')
os.symlink('/usr', 'out/folder')
os.mkfifo('out/pipe')
open('out/unreadable', 'w').write('x'); os.chmod('out/unreadable', 0)
os.mkdir('out/closed'); open('out/closed/file', 'w').write('y'); os.chmod('out/closed', 0)
open('beside', 'w').write('not a result')
"""
    assert sandboxed(code).files == {"unreadable": b"x", "closed/file": b"y"}


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize("code", [
    "import os; os.rmdir('out'); os.symlink('/input', 'out')",
    "import os; os.rmdir('out'); open('out', 'w').write('a file')", "import os; os.rmdir('out')",
    "import os; os.chmod('out', 0); os.chmod('.', 0)",
])  # fmt: skip
def test_a_result_folder_that_is_none_brings_nothing(code: str) -> None:
    result = sandboxed(code, inputs={"secret": b"of the grader"})
    assert (result.status, result.files) == ("OK", {})


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize(
    "code",
    [
        "import os; path = 'out'\nfor _ in range(20): path += '/d'; os.mkdir(path)",
        "open(b'out/\\xff', 'w')",
        "[open(f'out/{number}', 'w') for number in range(98)] and [open(f'{number}', 'w') for number in range(1)]",
    ],
)
def test_strange_results_are_the_command_s_own_fault(code: str) -> None:
    assert sandboxed(code, replace(SMALL, scratch_files=97)).status == "OL"


@needs_sandbox
@in_both_engines
@pytest.mark.parametrize("code", [
    "import os; open('out/file', 'w'); os.chmod('out', 0o400)",
    "import os\nfor number in range(900): os.mkdir('d'); os.chdir('d')",
    "import os\nfor number in range(90): os.mkdir('d' * 200); os.chdir('d' * 200)", "open(b'\\xff\\n', 'w')",
])  # fmt: skip
def test_a_strange_scratch_folder_is_no_fault_of_the_grader(code: str) -> None:
    result = sandboxed(f"{code}\nraise SystemExit(1)", replace(SMALL, scratch_files=1000))
    assert (result.status, result.exit_code) == ("RE", 1)


@needs_sandbox
@in_both_engines
def test_sandboxes_work_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        codes = [f"open('out/mine', 'w').write('{number}' * 1000)" for number in range(8)]
        results = list(pool.map(sandboxed, codes))
    assert [result.files for result in results] == [{"mine": b"%d" % number * 1000} for number in range(8)]


@needs_sandbox
@in_both_engines
def test_nothing_is_left_open() -> None:
    def descriptors() -> list[str]:
        gc.collect()  # what earlier tests left open in reference cycles
        return sorted(path.name for path in Path("/proc/self/fd").iterdir())

    sandboxed("")
    before = descriptors()
    sandboxed("import time; time.sleep(60)", replace(SMALL, wall_seconds=0))
    sandboxed("while True: print('x' * 1000)")
    assert descriptors() == before


def _grader_environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[1])))}


@needs_sandbox
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_grader_that_is_killed_or_interrupted_takes_the_sandbox_with_it(number: signal.Signals) -> None:
    name = f"survivor-{os.getpid()}-{number.name}"
    code = f"import time; {name!r}; time.sleep(100)"
    grader = f"from sandboxed import sandboxed; sandboxed({code!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{grader}  # grader"], env=_grader_environment(), stderr=subprocess.DEVNULL
    )
    try:
        # The grader, bubblewrap's command line has no code of the student's in it, and the command itself.
        wait_until(lambda: len(running(name)) == 2, "the run", 90)
        process.send_signal(number)
        process.wait()
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: running(name) == [], "its end", 90)


@pytest.fixture
def _own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "version", bubblewrap.version.__wrapped__)


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@needs_sandbox
def test_where_a_sandbox_starts_there_is_no_problem() -> None:
    assert sandbox_problem() is None


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


@pytest.mark.usefixtures("_own_version")
def test_without_bubblewrap_the_command_that_installs_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bubblewrap, which is not installed: install the package bubblewrap" in (sandbox_problem() or "")


@pytest.mark.usefixtures("_own_version")
def test_an_old_bubblewrap_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "bwrap", "echo bubblewrap 0.4.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "bubblewrap 0.7.0 or later, and this is 0.4.1: install" in (sandbox_problem() or "")


@pytest.mark.usefixtures("_own_version")
def test_a_bubblewrap_that_cannot_start_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(
        tmp_path,
        "bwrap",
        'test "$1" = --version && echo bubblewrap 0.8.0 && exit\necho no namespaces >&2; exit 1',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = sandbox_problem()
    assert found is not None
    assert "a sandbox does not start here (the sandbox did not start: no namespaces): " in found


def test_another_system_and_another_processor_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "no filter for riscv64 processors" in (sandbox_problem() or "")
    monkeypatch.setattr("sys.platform", "darwin")
    assert "The sandbox needs Linux" in (sandbox_problem() or "")
