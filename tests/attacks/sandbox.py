"""Attacks from inside the sandbox: on its surroundings, on the machine's resources, and on its results.

Each function is an attack. Its source is inserted into the broken experiment.
"""

import ctypes
import inspect
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attacks import attempts
from attacks.attack import Attack, Base, Expected
from attacks.planted import at_the_top, handed_in, source_of
from harness.recipes.recipe import ROOT

# The modules that a function here may use.
_IMPORTS = "import atexit, ctypes, mmap, os, signal, sys, threading, time\nfrom contextlib import suppress\n"
_STILL_BROKEN = "The symptom is still there"
_NO_RESULT = r"\(RE\).*left no complete result"
_attacks: list[Attack] = []


def _add(id: str, says: str, code: Callable[[Base], str], because: str, slow: bool, in_suite: bool) -> None:
    def build(base: Base) -> bytes:
        source = at_the_top(source_of(base.untouched), code(base), epochs=1)
        return handed_in(base, "untouched", source, id)

    expected = Expected(("graded",), because, "wrong")
    _attacks.append(Attack(id, "sandbox", says, expected, build, slow=slow, in_suite=in_suite))


def _attack(because: str, *, slow: bool = False, in_suite: bool = False) -> Callable[[Callable[..., None]], None]:
    """Insert a function that runs at once or, if it takes the results folder and the canary, at the end."""

    def add(function: Callable[..., None]) -> None:
        name, text = function.__name__, inspect.getsource(function)
        text = f"{_IMPORTS}\n\n{text[text.index('def ') :]}\n\n"

        def code(base: Base) -> str:
            if inspect.signature(function).parameters:
                return f"{text}atexit.register({name}, os.path.abspath('out'), {str(base.canary)!r})\n"
            return f"{text}{name}()\n"

        _add(name, function.__doc__ or "", code, because, slow, in_suite)

    return add


def _every_attempt(base: Base) -> str:
    known = {"canary": str(base.canary), "submissions": str(base.submissions), "suite": str(ROOT)}
    known["machine"] = os.uname().nodename
    breached = "raise RuntimeError('-'.join(('wreck', 'breached')), _gained)"
    source = Path(attempts.__file__).read_text(encoding="utf-8")
    return f"{source}\n\n_gained = gains({known!r})\nif _gained:\n    {breached}\n"


_add("every_attempt", "Try every way out of the sandbox, one after another.", _every_attempt, _STILL_BROKEN,
    slow=False, in_suite=True)  # fmt: skip


@_attack(r"\(ML\)", in_suite=True)
def fork_bomb() -> None:
    """Fork until no fork succeeds. Each child continues to fork."""
    for _ in range(100_000):
        with suppress(OSError):
            os.fork()


@_attack(r"\(ML\)")
def memory_bomb() -> None:
    """Allocate memory until none is left, and catch every error."""
    held = []
    while True:
        with suppress(MemoryError):
            held.append(bytearray(b"x" * (16 << 20)))


@_attack(r"\(ML\)")
def memory_of_children() -> None:
    """Allocate a moderate amount of memory in each of forty children."""
    for _ in range(40):
        if os.fork() == 0:
            held = bytearray(b"x" * (200 << 20))
            time.sleep(1000 + len(held))
    time.sleep(1000)


@_attack(r"\(ML\)")
def page_tables() -> None:
    """Touch one page in every region of memory, so that page tables fill the memory."""
    held = []
    while True:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
        try:
            held.append(mmap.mmap(-1, 1 << 38, flags=flags, prot=mmap.PROT_READ))
        except OSError:
            break
        for place in range(0, 1 << 38, 1 << 21):
            held[-1][place]


@_attack(r"\(OL\)", in_suite=True)
def disk_fill() -> None:
    """Fill every writable folder."""
    for place in ("/dev/shm", "/tmp", "/scratch"):
        for number in range(10):
            with suppress(OSError), open(f"{place}/fill{number}", "wb") as file:
                while True:
                    file.write(bytes(1 << 20))
    time.sleep(2)


@_attack(r"\(OL\)")
def inode_fill() -> None:
    """Create empty files without end."""
    for number in range(10_000_000):
        with suppress(OSError):
            open(f"/scratch/empty{number}", "w").close()


@_attack(r"\(OL\)")
def sparse_giants() -> None:
    """Leave files with a huge hole among the results."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.makedirs("out", exist_ok=True)
    for number, size in enumerate((1 << 45, 60 << 20, 60 << 20)):
        with open(f"out/giant{number}", "wb") as file, suppress(OSError):
            file.truncate(size)


@_attack(r"\(OL\)", in_suite=True)
def output_flood() -> None:
    """Write to standard output without end."""
    while True:
        os.write(1, b"x" * 65536)


@_attack(_STILL_BROKEN)
def daemon() -> None:
    """Leave a daemon behind: forked twice, in its own session, ignoring signals."""
    sys.stdout.flush()
    if os.fork() == 0:
        with suppress(OSError):
            os.setsid()
        if os.fork() == 0:
            for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 256)
            while True:
                time.sleep(1)
        os._exit(0)


@_attack(_STILL_BROKEN)
def signal_to_everybody() -> None:
    """Send every signal to every process that it can reach."""
    for number in range(1, 65):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    for number in range(1, 65):
        for target in (-1, 1, os.getppid()):
            with suppress(OSError):
                os.kill(target, number)


@_attack(_STILL_BROKEN)
def closed_descriptors() -> None:
    """Close all inherited file descriptors, and continue."""
    os.closerange(0, 256)
    for _ in range(3):
        os.open("/dev/null", os.O_RDWR)


@_attack(r"\(SG\)|\(RE\)")
def foreign_system_calls() -> None:
    """Make system calls with the convention of another processor, where the same numbers are other calls."""
    # mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; ret
    code = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
    area = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    area.write(code)
    place = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if ctypes.CFUNCTYPE(ctypes.c_int)(place)() >= 0:
        raise RuntimeError("-".join(("wreck", "breached")))


@_attack(r"\(SG\)")
def kills_itself() -> None:
    """Kill itself, which looks like a failure of the machine."""
    os.kill(os.getpid(), signal.SIGKILL)


@_attack("the harness itself failed.*import of")
def claims_our_fault() -> None:
    """End with the exit status that means a failure of the grader's own script."""
    os._exit(3)


@_attack(_NO_RESULT)
def says_nothing() -> None:
    """End successfully at once, without results."""
    os._exit(0)


@_attack(r"\(TO\)", slow=True)
def busy_for_ever() -> None:
    """Compute without end, and ignore the signal that ends the run."""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


@_attack(r"\(TO\)", slow=True)
def stops_itself() -> None:
    """Stop itself, so that it uses no more processor time."""
    os.kill(os.getpid(), signal.SIGSTOP)


@_attack(r"\(TO\)", slow=True)
def never_ends() -> None:
    """Finish the training, then keep the process alive with a thread that does not end."""
    threading.Thread(target=lambda: time.sleep(10**6), daemon=False).start()


@_attack(_NO_RESULT, in_suite=True)
def links_as_results(out: str, canary: str) -> None:
    """Replace the results with links to the grader's files."""
    for name, target in (("metrics.log", canary), ("checkpoint.pt", "/proc/self/environ"), ("checks.json", "/")):
        os.remove(f"{out}/{name}")
        with suppress(OSError):
            os.symlink(target, f"{out}/{name}")
    with suppress(OSError):
        os.symlink(canary, f"{out}/error.txt")
        os.symlink("/", f"{out}/everything")


@_attack(_NO_RESULT)
def pipes_as_results(out: str, canary: str) -> None:
    """Replace the results with named pipes, at which a reader would wait forever."""
    for name in ("metrics.log", "checkpoint.pt", "checks.json"):
        os.remove(f"{out}/{name}")
        with suppress(OSError):
            os.mkfifo(f"{out}/{name}")


@_attack(_NO_RESULT)
def devices_as_results(out: str, canary: str) -> None:
    """Replace the results with devices, or with hard links to system files."""
    for name, minor in (("metrics.log", 5), ("checkpoint.pt", 9)):
        os.remove(f"{out}/{name}")
        with suppress(OSError):
            os.mknod(f"{out}/{name}", 0o20666, os.makedev(1, minor))
        with suppress(OSError):
            os.link("/usr/bin/env", f"{out}/{name}")


@_attack(_STILL_BROKEN)
def unreadable_results(out: str, canary: str) -> None:
    """Remove all permissions from the results."""
    for name in os.listdir(out):
        os.chmod(f"{out}/{name}", 0)
    os.chmod(out, 0)


@_attack(r"\(OL\)")
def deep_results(out: str, canary: str) -> None:
    """Put the results into hundreds of nested folders."""
    folder = os.open(out, os.O_RDONLY)
    for _ in range(800):
        os.mkdir("d", dir_fd=folder)
        folder, above = os.open("d", os.O_RDONLY, dir_fd=folder), folder
        os.close(above)


@_attack(_STILL_BROKEN)
def odd_names_of_results(out: str, canary: str) -> None:
    """Leave files whose names contain "..", line breaks or terminal colours."""
    for name in ("..\\..\\evil", "a\nb", "\x1b[31mred", "\u202egnp.exe", "x" * 200, "-rf", "$(id)", "run\r"):
        with open(os.path.join(out, name), "w") as file:
            file.write("x")


@_attack(_NO_RESULT)
def results_of_another_form(out: str, canary: str) -> None:
    """Leave a log with huge numbers and deep lists, and findings with very deep nesting."""
    lines = ['{"step": 0, "epoch": 0, "loss": ' + "9" * 5000 + "}", '{"step": ' + "[" * 5000 + "]" * 5000 + "}"]
    for name, text in (("metrics.log", "\n".join([*lines, ""])), ("checks.json", "[" * 100_000)):
        with open(f"{out}/{name}", "w") as file:
            file.write(text)


@_attack(r"\(RE\)", in_suite=True)
def error_that_is_a_page(out: str, canary: str) -> None:
    """Fail with an error message of markup, terminal commands and a megabyte of text."""
    with open(f"{out}/error.txt", "w") as file:
        file.write("<script>alert(1)</script>\x1b]0;owned\x07\u202e" + "=1+1" + "x" * 900_000)
    os._exit(2)


@_attack(_STILL_BROKEN)
def left_for_the_evaluator(out: str, canary: str) -> None:
    """Leave modules for the next process, which evaluates the weights, to import."""
    for place in ("/scratch", "/tmp", "/dev/shm", out, "/input"):
        for name in ("sitecustomize", "usercustomize", "torch", "numpy", "json"):
            with suppress(OSError), open(f"{place}/{name}.py", "w") as file:
                file.write("raise SystemExit(0)")


@_attack("")
def child_rewrites_after_the_end(out: str, canary: str) -> None:
    """A child rewrites the results after the run has ended."""
    if os.fork() == 0:
        for _ in range(2000):
            time.sleep(0.005)
            for name in ("checks.json", "metrics.log"):
                with suppress(OSError):
                    open(f"{out}/{name}", "w").close()
        os._exit(0)


ATTACKS = tuple(_attacks)
