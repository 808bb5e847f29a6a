"""Workers that fork for each run: a run sees no trace of the worker or of other runs, as in a fresh process."""

import ctypes
import errno
import gc
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import wait_until
from helpers.sandbox_marks import needs_sandbox
from helpers.sandboxed import MIB, SMALL, Warm, opened

from grader.replay.inside import INSIDE
from grader.replay.replayer import Sandbox, open_sandbox, replay_interpreter
from grader.replay.request import RUN_LIMITS
from grader.sandbox import (
    ForkingSandbox,
    SandboxCommand,
    SandboxResult,
    SandboxStopped,
    StopSignal,
    engine,
    run_in_sandbox,
    run_unsandboxed,
)
from grader.sandbox.bubblewrap import bwrap_command
from harness.recipes.catalogue import load_recipe
from harness.run.settings import RunSettings

pytestmark = needs_sandbox
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1) if sys.platform == "linux" else 0  # its version


@pytest.fixture(scope="module")
def warm(working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Return a sandbox that many tests may share, because runs cannot see each other."""
    with opened(tmp_path_factory.mktemp("warm")) as made:
        yield made
        assert made.sandbox.failure == ""


# --- Resources that a run can reach ---


def test_a_run_is_nobody_in_namespaces_of_its_own(warm: Warm) -> None:
    code = (
        "import os; print(os.getuid(), os.getgid(), os.getppid(), os.uname().nodename,"
        " os.listdir('/proc'), os.listdir('/sys'))"
    )
    assert warm.said(code) == "65534 65534 1 sandbox ['cpuinfo'] ['devices']"


@pytest.mark.skipif(LANDLOCK < 1, reason="this kernel has no Landlock")
@pytest.mark.parametrize("child", ["", "if os.fork():\n    os.wait()\n    raise SystemExit\n"])
def test_landlock_keeps_a_run_and_its_children_from_more_than_the_mounts_do(child: str, warm: Warm) -> None:
    # A device that is writable according to the mounts and its permissions.
    code = "try: os.open('/dev/urandom', os.O_WRONLY)\nexcept OSError as error: print(error.errno)"
    assert warm.said(f"import os\n{child}{code}") == str(errno.EACCES)
    if LANDLOCK >= 6:
        assert warm.said("import os\ntry: os.kill(1, 0)\nexcept PermissionError: print('refused')") == "refused"


def test_what_all_runs_inherit_has_no_memory_that_two_could_write(tmp_path: Path) -> None:
    with opened(tmp_path, "import builtins, mmap; builtins.kept = mmap.mmap(-1, 4096)") as warm:
        result = warm.run("print('anyway')")
        assert (result.status, result.stdout) == ("XX", b"")
        assert "the imports share memory" in result.message


# --- Nothing survives a run ---

STATE = """
import builtins, gc, json, os, resource, signal, sys, warnings
limits = [resource.getrlimit(number) for number in range(16)]
handlers = [str(signal.getsignal(number)).split(' at ')[0] for number in signal.valid_signals()]
folders = {name: sorted(os.listdir(name)) for name in ('.', 'out', '/dev/shm', '/input')}
print(json.dumps([
    limits, handlers, folders, sorted(os.environ.items()), os.getcwd(), sorted(vars(builtins)), len(sys.modules),
    str(len)[:20], sys.path, sys.getrecursionlimit(), sys.getswitchinterval(),
    sorted(map(str, signal.pthread_sigmask(signal.SIG_BLOCK, []))), gc.get_threshold(), len(warnings.filters),
    os.uname().nodename, os.getpid(), len(os.listdir('/tmp')),
]))
"""
SPOILING = """
import builtins, gc, json, os, resource, signal, sys, warnings
builtins.len = builtins.mark = builtins.spoilt = lambda *_: 0
json.dumps = lambda *_: 'spoilt'
sys.modules['json'] = sys.modules['spoilt'] = sys
sys.path.insert(0, '/scratch'); sys.setrecursionlimit(50_000); sys.setswitchinterval(1); gc.disable()
gc.set_threshold(1); warnings.simplefilter('error'); os.environ['SPOILT'] = '1'
for number in signal.valid_signals():
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for number in range(16):
    # Without processor time it would be killed, sooner or later; without file size it could say nothing.
    try: resource.setrlimit(number, (0, 0)) if number > 1 else None
    except (OSError, ValueError): pass
for place in ('/scratch', '/scratch/out', '/tmp', '/dev/shm'):
    os.mkdir(f'{place}/spoilt')
os.close(0); os.close(2)
"""


def test_nothing_that_a_run_changes_is_there_for_the_next(warm: Warm) -> None:
    before = warm.said(STATE)
    spoilt = warm.run(SPOILING)
    assert spoilt.status == "OK", spoilt
    assert warm.said(STATE) == before
    assert warm.said("print(mark)") != "spoilt"


def test_limits_are_those_of_each_run(warm: Warm) -> None:
    narrow = replace(SMALL, memory_bytes=64 * MIB, file_bytes=MIB, scratch_bytes=2 * MIB, processes=2, seconds=3)
    wide = warm.said(STATE)
    assert warm.run("kept = bytearray(b'x') * 2 ** 27; import time; time.sleep(60)", narrow).status == "ML"
    assert json.loads(warm.run(STATE, narrow).stdout)[0] != json.loads(wide)[0]
    assert warm.said("print(len(bytearray(b'x') * 2 ** 27))") == str(2**27)
    assert warm.said(STATE) == wide


def test_each_run_draws_numbers_of_its_own(tmp_path: Path) -> None:
    preload = "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import random, numpy.random"
    with opened(tmp_path, preload) as warm:
        code = "import random, numpy; print(random.random(), numpy.random.rand())"
        drawn = [warm.said(code).split() for _ in range(2)]
    assert len({*drawn[0], *drawn[1]}) == 4


# --- The same behaviour as in a fresh process ---

# The two processes give different error messages, so only the exit status must agree.
ENDINGS = {
    "status 256": "import sys; sys.exit(256)",
    "words": "import sys; sys.exit('words')",
    "error": "raise OSError('no')",
    "aborted": "import os; os.abort()",
    "no output": "import sys; sys.stdout = sys.stderr = None; 1 / 0",
    "at exit": "import atexit; atexit.register(print, 'bye'); print('first')",
    "finalized": "import weakref\nclass Kept: pass\nkept = Kept()\nweakref.finalize(kept, print, 'gone')",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
    "ours": "import worker, watch",
    "who": "import sys; print(sys.argv, __name__, sys.modules['__main__'].__dict__ is globals(), sys.path, sys.flags)",
    "depth": "n = 0\ndef f():\n  global n\n  n += 1\n  f()\ntry: f()\nexcept RecursionError as e: print(n, e)",
    "signals": "import signal; print([signal.getsignal(n) for n in (1, 2, 13, 15, 25)],"
    " signal.pthread_sigmask(signal.SIG_BLOCK, []))".replace("signal.getsignal(n)", "str(signal.getsignal(n))[:20]"),
    "environment": "import os; print(sorted(os.environ), os.listdir('.'), os.sched_getaffinity(0))",
}  # fmt: skip


@pytest.mark.parametrize("code", ENDINGS.values(), ids=ENDINGS)
def test_a_script_ends_as_in_a_process_of_its_own(code: str, warm: Warm) -> None:
    command = warm.command(code)
    forked, fresh, plain = warm.run(code), run_in_sandbox(command), run_unsandboxed(command)
    forked, fresh, plain = (replace(result, stderr=b"", seconds=0.0) for result in (forked, fresh, plain))
    assert forked == fresh == plain


def test_a_run_has_the_same_place_and_limits_in_both_engines(warm: Warm) -> None:
    code = (
        "import os, resource; print(os.getuid(), os.getgid(), os.uname(), os.getcwd(), sorted(os.listdir('/')),"
        " os.listdir('/input'), [resource.getrlimit(n) for n in range(16)])"
    )
    assert warm.run(code).stdout == run_in_sandbox(warm.command(code)).stdout != b""


def test_another_interpreter_has_a_worker_of_its_own(warm: Warm) -> None:
    asked = "import builtins, os; print(builtins.mark, os.environ.get('OTHER'))"
    command, mark = warm.command(asked), warm.said("print(mark)")
    other = replace(command, interpreter=replace(warm.interpreter, environment={"OTHER": "1"}))
    first, second = (warm.sandbox(other).stdout.split() for _ in range(2))
    assert first == second == [first[0], b"1"]
    assert warm.said(asked).split() == [mark, "None"] != [first[0].decode(), "None"]


@pytest.mark.parametrize(
    ("preload", "reason"),
    [
        ("raise ImportError('not here')", "ImportError: not here"),
        ("import os; os._exit(1)", "without a message"),
        ("import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", "2 threads"),
    ],
)  # fmt: skip
def test_imports_that_fail_are_our_fault_and_nobody_is_bothered(
    preload: str, reason: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path, preload) as warm:
        result = warm.run("print('anyway')")
        assert (result.status, reason in result.message) == ("XX", True), result
    assert capfd.readouterr() == ("", "")


def test_where_a_worker_cannot_fork_each_run_has_a_worker_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if one namespace could not be created inside another.
    monkeypatch.setattr(engine, "bwrap_command", partial(flat, bwrap_command))
    with opened(tmp_path) as warm:
        assert len({warm.run("print(mark)").stdout for _ in range(3)}) == 3
        assert "new namespaces" in warm.sandbox.failure
        assert warm.run("raise SystemExit(4)").exit_code == 4


def flat(bwrap_command: Callable[..., list[str]], **options: Any) -> list[str]:
    return bwrap_command(**{**options, "nested": False})


# --- The life of a worker ---


def test_one_that_is_killed_takes_its_run_with_it_and_is_replaced(tmp_path: Path) -> None:
    with opened(tmp_path) as warm, ThreadPoolExecutor(1) as pool:
        first = warm.said("print(mark)")
        running = pool.submit(warm.run, "import time; time.sleep(60)")
        wait_until(warm.is_running, "the run", 60)
        os.kill(warm.process(), signal.SIGKILL)
        assert (running.result().status, running.result().signal) == ("SG", 9)
        second = warm.said("print(mark)")
        os.kill(warm.process(), signal.SIGKILL)
        # The grader may not have noticed the end yet. A run that begins in the dying worker dies with it.
        result = warm.run("print('on')")
        assert result.stdout == b"on\n" or (result.status, result.signal) == ("SG", 9), result
        assert len({first, second, warm.said("print(mark)")}) == 3


def test_callers_at_the_same_time_have_a_process_each(tmp_path: Path) -> None:
    code = "import time; time.sleep(0.1); print(mark)"
    with opened(tmp_path) as warm, ThreadPoolExecutor(2) as pool:
        marks = set(pool.map(lambda _: warm.said(code), range(6)))
    assert len(marks) == 2


def test_a_run_ends_with_its_launcher(tmp_path: Path) -> None:
    with opened(tmp_path) as warm, ThreadPoolExecutor(1) as pool:
        mark = warm.said("print(mark)")
        running = pool.submit(warm.run, "import os, time; os.closerange(0, 3); time.sleep(60)")
        wait_until(warm.is_running, "the run", 60)
        os.kill(warm.launcher(), signal.SIGKILL)
        assert (running.result().status, running.result().signal) == ("SG", 9)
        # No process of the worker remains. The next run has a new worker.
        assert warm.processes() == {}
        assert warm.said("print(mark)") != mark


def test_a_launcher_has_a_higher_priority_than_its_run(tmp_path: Path) -> None:
    with opened(tmp_path) as warm, ThreadPoolExecutor(1) as pool:
        running = pool.submit(warm.run, "import time; time.sleep(60)")
        wait_until(warm.is_running, "the run", 60)
        launcher = warm.launcher()
        (run,) = (pid for pid, parent in warm.processes().items() if parent == launcher)
        launchers, runs = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (launcher, run))
        os.kill(launcher, signal.SIGKILL)
        running.result()
    assert launchers < runs


def test_a_launcher_that_is_killed_while_it_waits_is_replaced(tmp_path: Path) -> None:
    with opened(tmp_path) as warm:
        mark = warm.said("print(mark)")
        wait_until(lambda: len(warm.processes()) == 4, "what waits for the next run")
        os.kill(warm.launcher(), signal.SIGKILL)
        assert warm.said("print(mark)") == mark


def test_a_run_that_is_stopped_is_gone_at_once_and_the_next_is_not(tmp_path: Path) -> None:
    with opened(tmp_path) as warm, ThreadPoolExecutor(1) as pool:
        stop = StopSignal()
        warm.said("")
        running = pool.submit(warm.run, "import time; time.sleep(60)", SMALL, stop)
        wait_until(warm.is_running, "the run", 60)
        stop.set()
        with pytest.raises(SandboxStopped):
            running.result()
        assert warm.processes() == {}
        with pytest.raises(SandboxStopped):
            warm.run("", SMALL, stop)
        assert warm.said("print('on')") == "on"


def test_many_runs_leave_nothing_behind(tmp_path: Path) -> None:
    codes = [
        "open('out/x', 'w').write('x')",
        "import os\nif os.fork() == 0:\n  os.setsid()\n  os.closerange(0, 9)\n  import time; time.sleep(60)",
        "import os\nfor _ in range(5):\n  if os.fork() == 0: os._exit(0)",
        "import os; os.kill(os.getpid(), 9)",
        "kept = bytearray(b'x') * 2 ** 25",
    ]

    with opened(tmp_path) as warm:

        def held() -> tuple[int, int, int]:
            gc.collect()  # collect reference cycles of earlier tests now, not between two counts
            process = warm.process()
            memory = re.search(r"VmData:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
            assert memory
            own, theirs = (len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in ("self", process))
            return int(memory[1]), own, theirs

        warm.said("print(mark)")
        before = held()
        marks = {warm.said("print(mark)")}
        for number in range(50):
            warm.run(codes[number % len(codes)])
        wait_until(lambda: len(warm.processes()) == 4, "what waits for the next run")
        after = held()
        assert after[1:] == before[1:]
        assert after[0] <= before[0] + 1024  # kB; one run had 32 MiB
        assert marks == {warm.said("print(mark)")}


# --- With the imports of the grader ---


HOSTILE = """
import builtins, os, sys, torch, numpy, random
torch.set_default_dtype(torch.float64); torch.manual_seed(7); numpy.random.seed(7); random.seed(7)
torch.nn.functional.cross_entropy = torch.nn.Linear.forward = builtins.round = lambda *a, **k: 1 / 0
torch.use_deterministic_algorithms(False); torch.set_grad_enabled(False)
os.environ.clear(); sys.modules.clear()
"""
# The script reports its recursion depth at the point of failure.
ENDLESS = "def deeper(n):\n    return deeper(n + 1)\n\n\ndeeper(0)\n"


@pytest.mark.slow
def test_a_replay_has_the_same_bytes_in_both_engines_whatever_ran_before() -> None:
    def replayed(sandbox: Sandbox, source: str) -> SandboxResult:
        settings = asdict(RunSettings(seed=42, dataset="digits", epochs=1))
        job = {"settings": settings, "checks": ["learning_rate"], "source": source, "platform": True}
        inputs = {"job.json": json.dumps(job).encode()}
        made = sandbox(SandboxCommand(INSIDE / "replay.py", replay_interpreter(), inputs, RUN_LIMITS), None)
        return replace(made, seconds=0.0)

    healthy = load_recipe("huge_lr").healthy_source()
    with open_sandbox("warm", 1) as warm:
        assert replayed(warm, HOSTILE).status != "OK"
        results = [replayed(warm, source) for source in (healthy, ENDLESS)]
        assert isinstance(warm, ForkingSandbox)
        assert warm.failure == ""
    for other in (run_in_sandbox, run_unsandboxed):
        assert results == [replayed(other, source) for source in (healthy, ENDLESS)]
    assert {"metrics.log", "checkpoint.pt"} <= set(results[0].files)
    assert "error.txt" in results[1].files
