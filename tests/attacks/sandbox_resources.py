"""Attacks on the machine's resources: processes, memory, disk, output, time. Each ends at a limit, and alone."""

from attacks.attack import Attack, Base, Expected
from attacks.planted import at_the_top, edited, handed_in, source_of

_STILL_BROKEN = "The symptom is still there"


def _planted(
    id: str,
    says: str,
    code: str,
    because: str,
    *,
    slow: bool = False,
    in_suite: bool = False,
) -> Attack:
    def build(base: Base) -> bytes:
        return handed_in(base, "untouched", at_the_top(source_of(base.untouched), code, epochs=1), id)

    expected = Expected(("graded",), because)
    return Attack(id, "sandbox", says, expected, build, slow=slow, in_suite=in_suite)


def _every_epoch(id: str, says: str, code: str, because: str, *, in_suite: bool = False) -> Attack:
    """Plant code in `evaluate`, so that it runs while the log is open and being written."""

    def build(base: Base) -> bytes:
        body = "\n    ".join(code.strip().splitlines())
        source = edited(source_of(base.untouched), ("    model.eval()\n", f"    {body}\n    model.eval()\n"))
        return handed_in(base, "untouched", source, id)

    return Attack(id, "sandbox", says, Expected(("graded",), because), build, in_suite=in_suite)


ATTACKS = (
    _planted(
        "fork_bomb",
        "forks until nothing forks any more, and each child goes on",
        """
        import os
        for _ in range(100_000):
            try:
                os.fork()
            except OSError:
                pass
        """,
        r"\(ML\)",
        in_suite=True,
    ),
    _planted(
        "memory_bomb",
        "takes memory until there is none, catching every error",
        """
        held = []
        while True:
            try:
                held.append(bytearray(b"x" * (16 << 20)))
            except MemoryError:
                pass
        """,
        r"\(ML\)",
    ),
    _planted(
        "memory_of_children",
        "takes memory in forty children, each of them modest",
        """
        import os, time
        for _ in range(40):
            if os.fork() == 0:
                held = bytearray(b"x" * (200 << 20))
                time.sleep(1000)
        time.sleep(1000)
        """,
        r"\(ML\)",
    ),
    _planted(
        "page_tables",
        "touches a page in every stretch of memory, so that tables are what fills it",
        """
        import mmap
        held = []
        while True:
            try:
                area = mmap.mmap(-1, 1 << 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
            except OSError:
                break
            held.append(area)
            for place in range(0, 1 << 38, 1 << 21):
                area[place]
        """,
        r"\(ML\)",
    ),
    _planted(
        "disk_fill",
        "fills every folder that can be written",
        """
        import os
        for place in ("/dev/shm", "/tmp", "/scratch"):
            for number in range(10):
                try:
                    with open(f"{place}/fill{number}", "wb") as file:
                        while True:
                            file.write(bytes(1 << 20))
                except OSError:
                    pass
        import time
        time.sleep(2)
        """,
        r"\(OL\)",
        in_suite=True,
    ),
    _planted(
        "inode_fill",
        "makes empty files without end",
        """
        for number in range(10_000_000):
            try:
                open(f"/scratch/empty{number}", "w").close()
            except OSError:
                pass
        """,
        r"\(OL\)",
    ),
    _planted(
        "sparse_giants",
        "leaves files with an enormous hole among its results",
        """
        import os, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        os.makedirs("out", exist_ok=True)
        for number, size in enumerate((1 << 45, 60 << 20, 60 << 20)):
            with open(f"out/giant{number}", "wb") as file:
                try:
                    file.truncate(size)
                except OSError:
                    pass
        """,
        r"\(OL\)",
    ),
    _planted("output_flood", "writes to standard output without end",
        "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n", r"\(OL\)", in_suite=True),
    _every_epoch(
        "log_flood",
        "makes the log longer than anybody reads",
        """
import gc
from harness.run.metrics_log import LogWriter
for item in gc.get_objects():
    if isinstance(item, LogWriter):
        for _ in range(300_000):
            item.epoch({"epoch": 0, "val_loss": 1.0, "val_accuracy": 1.0})
""",
        r"\(OL\)|\(RE\)",
    ),
    _planted(
        "daemon",
        "leaves a daemon behind: forked twice, in a session of its own, deaf to signals",
        """
        import os, signal, sys, time
        sys.stdout.flush()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for number in range(1, 32):
                    try:
                        signal.signal(number, signal.SIG_IGN)
                    except (OSError, ValueError):
                        pass
                os.closerange(0, 256)
                while True:
                    time.sleep(1)
            os._exit(0)
        """,
        _STILL_BROKEN,
    ),
    _planted(
        "signal_to_everybody",
        "sends every signal to every process that it can reach",
        """
        import os, signal
        for number in range(1, 65):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
        for number in range(1, 65):
            for target in (-1, 1, os.getppid()):
                try:
                    os.kill(target, number)
                except OSError:
                    pass
        """,
        _STILL_BROKEN,
    ),
    _planted(
        "closed_descriptors",
        "closes everything that it was given, and goes on",
        """
        import os
        os.closerange(0, 256)
        for _ in range(3):
            os.open("/dev/null", os.O_RDWR)
        """,
        _STILL_BROKEN,
    ),
    _planted(
        "foreign_system_calls",
        "calls the kernel by the convention of another processor, whose numbers mean other calls",
        """
        import ctypes, mmap
        # mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; ret
        code = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
        area = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
        area.write(code)
        place = ctypes.addressof(ctypes.c_char.from_buffer(area))
        if ctypes.CFUNCTYPE(ctypes.c_int)(place)() >= 0:
            raise RuntimeError("wreck" + "-breached")
        """,
        r"\(SG\)|\(RE\)",
    ),
    _planted("kills_itself", "kills itself, which looks like a fault of the machine",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", r"\(SG\)"),
    _planted("claims_our_fault", "ends with the exit status by which our own script tells its faults",
        "import os\nos._exit(3)\n", "the harness broke.*imports os"),
    _planted("says_nothing", "ends well at once and leaves nothing", "import os\nos._exit(0)\n",
        r"\(RE\).*left no whole result"),
    _planted(
        "sleeps_for_ever",
        "sleeps for ever, deaf to signals",
        """
        import signal, time
        for number in range(1, 32):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(1000)
        """,
        r"\(TO\)",
        slow=True,
    ),
    _planted("busy_for_ever", "computes for ever, deaf to the signal that ends it",
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    pass\n", r"\(TO\)",
        slow=True),
    _planted("stops_itself", "stops itself, so that it uses no processor time any more",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n", r"\(TO\)", slow=True),
    _planted(
        "never_ends",
        "trains to its end, and then holds the process with a thread that does not end",
        """
        import threading, time
        def hold():
            while True:
                time.sleep(1)
        threading.Thread(target=hold, daemon=False).start()
        """,
        r"\(TO\)",
        slow=True,
    ),
)  # fmt: skip
