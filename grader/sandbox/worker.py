"""The worker: the program that makes runs inside a sandbox. It is process 1 there, and runs no student code itself.

The worker first imports libraries, and then makes runs in one of two ways. If it may create nested namespaces, it forks
a launcher process into new namespaces for each run, and makes any number of runs one after the other. Otherwise, the
worker itself is the launcher, and ends after one run. Everything else is the same in both cases:

    launcher    process 1 of the run's process namespace, which no process of the run can kill or stop: it makes the
      |         run's folders, measures the run, and collects its files when all its processes are dead (`watch.py`)
      |
    run         has no capabilities, no new privileges and three open files, is under Landlock, the seccomp filter and
                its limits, and executes one of our scripts, which loads the student's code

Launcher and run are undumpable, so that the kernel does not let another process read or write their memory or files. A
run has a copy of the worker's memory, which contains only the imports and no memory that two processes could write.

`grader.sandbox.engine` passes this source text into the sandbox. The grader's own process does not import it.
"""

import atexit
import contextlib
import ctypes
import gc
import json
import marshal
import os
import resource
import runpy
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import weakref
from types import FrameType
from typing import Any, NoReturn

import watch  # type: ignore[import-not-found] # it is next to this file in the sandbox

READY = b"R"
# The average time between two checks of the limits. The launcher checks at random times, so that a run cannot
# anticipate a check.
_POLL_SECONDS = 0.02
_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS = 0x00020000
# The number of the system call clone.
_CLONE = {"x86_64": 56, "aarch64": 220}
_USER, _GROUP = os.getuid(), os.getgid()
# The flags NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET (linux/sched.h).
_NAMESPACES = _CLONE_NEWNS | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_MOVE, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 13, 1 << 14, 1 << 18
_PR_SET_DUMPABLE, _PR_SET_NAME, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 15, 22, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SECCOMP_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
# The three system calls of Landlock (linux/landlock.h) have these numbers on every processor.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
# The number of access rights for files in each version of Landlock. Versions after these have the last number.
_FILE_ACCESS = (0, 13, 14, 15, 15, 16)
_TCP = 3  # access rights to bind and connect, since version 4 of Landlock
_SCOPES = 3  # restrictions for abstract sockets and signals, from Landlock version 6 on
_HUGE, _MADV_HUGEPAGE, _MADV_COLLAPSE = 2 << 20, 14, 25  # linux/mman.h
# Options from glibc's malloc.h: how much free memory at the end of the heap is returned to the kernel; how much memory
# is added there beyond a request; and the size from which a block gets separate pages (at most 32 MiB).
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# The nice value of a run is higher than the launcher's by this number. With equal values, the launcher would get the
# processor as rarely as each process of a fork bomb. Measured without the kernel's autogroup, as in a container: next
# to a second bomb and a busy loop, a fork bomb run by root made up to 3,700 processes with equal values, and up to 310
# processes with a difference of 5.
_NICER = 5
# The number of stack frames that Python counts between the caller of `_run_script` and the script.
_RUNPY_DEPTH = 4


def main(control: int, preload: str, *, forks: bool) -> None:
    """Run the script `preload`, if any, for its imports. Then make one run, or with `forks` one for each message."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.pop("PWD", None)  # bubblewrap sets this variable
    if preload:
        runpy.run_path(preload)
    if forks:
        _make_forks_cheap()
    _check_imported()
    sys.path.remove("/worker")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # otherwise every run would print the buffered text again
    line = socket.socket(fileno=control)
    line.sendall(READY)
    # Start each launcher before the grader requests a run. When a launcher has ended, all processes of its run are
    # dead.
    while forks and (launcher := _fork_into_namespaces()):
        if os.waitstatus_to_exitcode(os.waitpid(launcher, 0)[1]) > 0:
            return  # the launcher failed, or got no job because the grader does not need this worker any more
    _launch(line, forked=forks)


def _make_forks_cheap() -> None:
    """Move the imports into huge pages, if the kernel can do so (Linux 6.1), and exclude them from garbage collection.

    A fork copies the page table, which is smaller with huge pages. A garbage collection in a run would write to all
    pages, so that the kernel would copy them. Measured: forking a process and ending it takes 5 ms instead of 26 ms,
    and each run needs two forks.
    """
    gc.freeze()
    _use_up_heap()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        areas = [line.split() for line in file]
    for area in areas:
        if area[1] == "rw-p" and (len(area) == 5 or area[5] == "[heap]"):
            start, end = (int(number, 16) for number in area[0].split("-"))
            first, last = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
            for advice in (_MADV_HUGEPAGE, _MADV_COLLAPSE):
                # The call fails for areas that contain no huge page, and on older kernels.
                _LIBC.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), advice)


def _use_up_heap() -> None:
    """Allocate all free blocks of 64 KiB and more in the heap, and add new memory to the end of the heap.

    If a run writes into free memory between imported objects, the kernel copies this memory page by page. New memory
    has huge pages.
    """
    _LIBC.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    _LIBC.mallopt(_M_TRIM_THRESHOLD, 256 << 20)
    _LIBC.mallopt(_M_TOP_PAD, 96 << 20)
    _LIBC.sbrk.restype = ctypes.c_void_p
    end = _LIBC.sbrk(ctypes.c_ssize_t(0))
    for _ in range(1 << 14):  # at most 1 GiB, because with another allocator the heap may never grow
        _LIBC.malloc(ctypes.c_size_t(1 << 16))
        if _LIBC.sbrk(ctypes.c_ssize_t(0)) != end:
            break
    # Restore the default, because this option also applies to the heap of every thread.
    _LIBC.mallopt(_M_TOP_PAD, 128 << 10)


def _check_imported() -> None:
    """Raise `RuntimeError` if it is not safe to fork after the imports."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"there are {threads} threads after the imports, and a fork would keep their locks")
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
        # The flag "sh" marks shared memory that is writable or may become so.
        if any(line.startswith("VmFlags:") and "sh" in line.split() for line in file):
            raise RuntimeError("the imports share memory: one run could pass data to another")


# --- The launcher ---


def _launch(line: socket.socket, *, forked: bool) -> NoReturn:
    """Wait for a job, make its run, send the report (`grader.sandbox.result`), and end this process."""
    try:
        # Fork the run's process before reading the job. A fork is cheap while this process has touched little of its
        # memory, and the run gets no copy of the job.
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        run = os.fork()
        if run == 0:
            ours.close()
            _become(theirs, forked)
        theirs.close()
        size, descriptors, _, _ = socket.recv_fds(line, 20, 4)
        if not size:
            os._exit(1)
        line.close()
        given, stdout, stderr, pipe = descriptors
        job = marshal.loads(os.read(given, int(size)))  # noqa: S302 - from the grader
        _use_streams(stdout, stderr, given, pipe, ours.fileno())
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # `_make_run` waits for it between two checks
        if forked:
            _map_user()
            _make_world(job, given)
        os.close(given)
        os.mkdir(f"{watch.SCRATCH}/out")
        _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
        _send(pipe, b"S")
        _send_report(pipe, job, run, ours, forked)
        os.close(pipe)  # so that the grader can continue while this process ends
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _send_report(pipe: int, job: dict[str, Any], run: int, ours: socket.socket, forked: bool) -> None:
    files: list[tuple[str, bytes]] = []
    seconds = 0.0
    try:
        ending, seconds = _make_run(job, run, ours, forked)
        ending, files = watch.collect_if_ended(ending, watch.SCRATCH, job)
    except BaseException as error:
        ending = ("XX", None, None, f"the launcher failed: {error!r}")
    head = dict(zip(("status", "exit_code", "signal", "message"), ending, strict=True))
    sizes = [(name, len(content)) for name, content in files]
    _send(pipe, json.dumps({**head, "seconds": seconds, "files": sizes}).encode() + b"\n")
    for _, content in files:
        _send(pipe, content)


def _send(pipe: int, content: bytes) -> None:
    data = memoryview(content)
    while data:
        data = data[os.write(pipe, data) :]


def _make_run(job: dict[str, Any], run: int, ours: socket.socket, forked: bool) -> tuple[watch.Ending, float]:
    """Start the run, wait until it ends or exceeds a limit, and kill its processes. Return its ending and its seconds.

    run: the number of the process that waits for its script. ours: this process's end of the connection to it.
    """
    rights = marshal.dumps((job["script"], job["rlimits"], job["seccomp"]))
    socket.send_fds(ours, [rights], [1, 2])
    for number in (1, 2):
        os.close(number)  # only the run may write to standard output and standard error
    # /proc shows all processes in the sandbox. If the worker forks, it is process 1, and does not count.
    meter = watch.Meter(job, os.readlink("/proc/self"), ("1",) if forked else ())
    ending, ended = meter.over_limit(), None
    while ending is None and (ended := _wait_for(run)) is None:
        signal.sigtimedwait([signal.SIGCHLD], 2 * _POLL_SECONDS * os.urandom(1)[0] / 255)
        ending = meter.over_limit()
    if ended is not None:
        problem = ours.recv(4096).decode("utf-8", "replace")
        not_started: watch.Ending = ("XX", None, None, f"the run could not be started: {problem}")
        ending = not_started if problem else watch.ending_of_code(os.waitstatus_to_exitcode(ended))
    _kill_all()
    return ending, meter.seconds()


def _wait_for(run: int) -> int | None:
    """Reap all ended processes, including orphans. Return the wait status of `run`, or None if it has not ended."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == run:
            return status
        if pid == 0:
            return None


def _kill_all() -> None:
    """Kill all other processes in this process's namespace, and wait until they have ended."""
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _use_streams(stdout: int, stderr: int, *kept: int) -> None:
    """Use these files as standard output and error, and an empty standard input. Close all others except `kept`."""
    for number, descriptor in enumerate((os.open("/dev/null", os.O_RDONLY), stdout, stderr)):
        os.dup2(descriptor, number)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):  # the descriptor that `listdir` used is already closed
                os.close(descriptor)


# --- New namespaces for each run ---


def _call(name: str, *arguments: Any) -> int:
    """Call a function of the C library and return its result. Raises `OSError` if it fails."""
    result = getattr(_LIBC, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments[:2]}: {os.strerror(number)}")
    return int(result)


def _mount(kind: bytes | None, place: str, flags: int, options: str = "") -> None:
    _call("mount", kind, place.encode(), kind, ctypes.c_ulong(flags), options.encode() or None)


def _fork_into_namespaces() -> int:
    """Fork as `os.fork` does, but without Python's hooks. The child is process 1 in new namespaces.

    Raises `OSError` if new namespaces are forbidden.
    """
    flags = ctypes.c_ulong(_NAMESPACES | signal.SIGCHLD)
    child: int = _LIBC.syscall(_CLONE[os.uname().machine], flags, None, None, None, None)
    if child < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"clone into new namespaces: {os.strerror(number)}")
    return child


def _map_user() -> None:
    """Give this process the same user and group in its new namespaces as it had outside them."""
    # The process must be dumpable for this, because an undumpable process may not write these files.
    _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
    contents = {"setgroups": "deny", "uid_map": f"{_USER} {_USER} 1", "gid_map": f"{_GROUP} {_GROUP} 1"}
    for name, content in contents.items():
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(content)


def _make_world(job: dict[str, Any], given: int) -> None:
    """Create the input folder, and the folders into which a run may write. These are empty except for visible paths.

    given: a file descriptor. From its position on, the file contains the inputs, one after the other.
    """
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    shown = {path: os.open(path, os.O_PATH) for path in job["shown"]}
    # Allow a few more files than the limit, so that the launcher can see that there are too many.
    inodes = 2 * job["scratch_files"]
    for place, size in job["writable"]:
        options = f"size={size},nr_inodes={inodes},mode=0755"
        _mount(b"tmpfs", place, _MS_NOSUID | _MS_NODEV, options)
    for path, descriptor in shown.items():
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT))
        # The path stays read-only, because a process in a nested namespace cannot make it writable.
        _mount(f"/proc/self/fd/{descriptor}".encode(), path, _MS_BIND | _MS_REC)
        os.close(descriptor)
    _mount(b"tmpfs", "/input", _MS_NOSUID | _MS_NODEV, "mode=0755")
    for name, size in job["inputs"]:
        path = f"/input/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            left = size
            while left:
                left -= os.sendfile(file.fileno(), given, None, left)
    _mount(b"tmpfs", "/input", _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _hide_processes() -> None:
    """Replace /proc by a folder that contains only `cpuinfo`, which torch reads."""
    # Build the new folder at another path first, because it needs a file from the old /proc.
    made = "/worker"
    _mount(b"tmpfs", made, _MS_NOSUID | _MS_NODEV, "size=16k,mode=0755")
    os.close(os.open(f"{made}/cpuinfo", os.O_CREAT))
    _mount(b"/proc/cpuinfo", f"{made}/cpuinfo", _MS_BIND)
    _mount(b"tmpfs", made, _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV, "size=16k")
    _mount(made.encode(), "/proc", _MS_MOVE)


# --- The run ---


def _become(theirs: socket.socket, forked: bool) -> NoReturn:
    """Wait until the launcher sends the name of a script, drop all privileges, and run the script.

    theirs: this process's end of the connection to the launcher. If a step fails, the launcher gets the error, and the
        script does not start.
    """
    try:
        message, descriptors, _, _ = socket.recv_fds(theirs, 1 << 16, 2)
        script, rlimits, program = marshal.loads(message)  # noqa: S302 - from the launcher
        # Only the launcher keeps the pipe for results, because a process that can write to it could forge an outcome.
        _use_streams(*descriptors, theirs.fileno())
        os.chdir(watch.SCRATCH)
        _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
        if forked:
            _call("unshare", _CLONE_NEWNS)
            _hide_processes()
        os.setsid()
        os.nice(_NICER)
        _call("prctl", _PR_SET_NAME, os.path.basename(script).encode())  # the name that `ps` shows
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a new interpreter
        _drop_capabilities()
        _limit(rlimits)
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _restrict_files()
        _filter(program)
        theirs.close()
    except BaseException as error:
        theirs.send(repr(error).encode()[:4000])
        os._exit(127)
    for name in (__name__, "watch"):  # hide these modules from the script
        sys.modules.pop(name, None)
    _run_script(script)


def _drop_capabilities() -> None:
    capability = 0
    while _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    nothing = ctypes.create_string_buffer(24)  # effective, permitted and inheritable capabilities, 64 bits each
    _call("capset", header, nothing)


def _limit(rlimits: list[tuple[str, int, int]]) -> None:
    """Set the limits of this process and its children, but never raise a limit."""
    for name, soft, hard in rlimits:
        number = getattr(resource, name)
        most = resource.getrlimit(number)[1]
        given = (soft, hard) if most == resource.RLIM_INFINITY else (min(soft, most), min(hard, most))
        resource.setrlimit(number, given)


def _restrict_files() -> None:
    """Forbid writing outside the writable folders with Landlock, if the kernel supports Landlock."""
    version = _LIBC.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < 1:  # without Landlock, only the read-only mounts forbid writing
        return
    every = (1 << _FILE_ACCESS[min(version, len(_FILE_ACCESS) - 1)]) - 1
    attributes = [every] + [_TCP] * (version >= 4) + [_SCOPES] * (version >= 6)
    packed = struct.pack(f"={len(attributes)}Q", *attributes)
    ruleset = _call("syscall", _CREATE_RULESET, packed, len(packed), 0)
    rules = [("/", _EXECUTE | _READ_FILE | _READ_DIR)]
    rules += [(folder, every) for folder in watch.WRITABLE]
    rules += [(device, _READ_FILE | _WRITE_FILE) for device in ("/dev/null", "/dev/full")]
    for path, access in rules:
        place = os.open(path, os.O_PATH)
        _call("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, place), 0)
        os.close(place)
    _call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _filter(program: bytes) -> None:
    """Install a seccomp filter. The C struct `sock_fprog` has the number and the address of its instructions."""
    instructions = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    _call("prctl", _PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.create_string_buffer(described), 0, 0)


def _run_script(script: str) -> NoReturn:
    """Run a script of the grader and end this process. The script itself catches exceptions in the experiment."""
    status = 1
    try:
        _prepare_interpreter(script)
        try:
            runpy.run_path(script, run_name="__main__")
            status = 0
        except SystemExit as end:
            status = (end.code & 0xFF) if type(end.code) is int else int(end.code is not None)
        threading._shutdown()  # type: ignore[attr-defined] # waits for threads, as Python does at the end of a program
        atexit._run_exitfuncs()
    except BaseException:
        status = 1
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _prepare_interpreter(script: str) -> None:
    """Give the script the state of a new interpreter: arguments, random numbers, recursion limit."""
    sys.argv = [script]
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()  # otherwise NumPy gives all runs equal numbers; Python's `random` reseeds itself after a fork
    # Torch registers 174 finalizers, which would take 40 ms at the end of each run, so do not run them. If the run
    # itself creates a finalizer, it registers the exit hook again.
    finalize: Any = weakref.finalize
    atexit.unregister(finalize._exitfunc)
    finalize._registered_with_atexit = False
    # In an infinite recursion, the script must reach the same depth as in a new interpreter.
    frame: FrameType | None = sys._getframe(1)
    depth = _RUNPY_DEPTH
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)
