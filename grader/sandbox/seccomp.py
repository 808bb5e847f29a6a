"""The seccomp filter: a list of system calls that a run may make, with reasons, as a classic BPF program.

All other system calls fail with ENOSYS, as on a kernel without them, so that the C library uses alternatives. To find
the calls that a new library makes, run it under `strace -f` and compare them with the list. Add a call only if a
training run needs it. Layout and constants are from linux/seccomp.h, linux/filter.h and linux/bpf_common.h.
"""

import errno
import struct
from dataclasses import dataclass
from functools import cache

# The kernel's numbers for the calling conventions of these processors (linux/audit.h).
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# On x86_64, this call number and higher numbers belong to the x32 calling convention.
X32_BIT = 0x40000000

# {reason why a run needs the calls: {allowed call: (number on x86_64, number on aarch64)}}. The numbers are from
# arch/x86/entry/syscalls/syscall_64.tbl and asm-generic/unistd.h. A number is None if the processor has no such call.
# The list contains all calls that occurred in runs, and the calls that other versions of the C library or of Python
# make instead.
_ALLOWED: dict[str, dict[str, tuple[int | None, int | None]]] = {
    "reads inputs; writes logs, checkpoints and prints": {
        "read": (0, 63), "readv": (19, 65), "pread64": (17, 67), "write": (1, 64), "writev": (20, 66),
        "pwrite64": (18, 68), "lseek": (8, 62), "ftruncate": (77, 46), "fsync": (74, 82),
        "fdatasync": (75, 83), "close": (3, 57), "close_range": (436, 436),
    },
    "finds files: Python loads a module when it is first imported": {
        "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291),
        "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "getdents64": (217, 61),
        "readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17),
    },
    "makes a folder, gives a whole file its name, copies a checkpoint with its mode, removes temporary files": {
        "mkdir": (83, None), "mkdirat": (258, 34), "rename": (82, None), "renameat": (264, 38),
        "renameat2": (316, 276), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
        "fchmodat2": (452, 452), "utimensat": (280, 88), "unlink": (87, None), "unlinkat": (263, 35),
        "rmdir": (84, None),
    },
    "gets memory for tensors, and gives it back": {
        "brk": (12, 214), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    },
    "starts threads; forks for a check and reads its result": {
        "set_robust_list": (273, 99), "rseq": (334, 293), "sched_yield": (24, 124),
        "sched_getaffinity": (204, 123), "getcpu": (309, 168), "gettid": (186, 178), "getpid": (39, 172),
        "getppid": (110, 173), "pipe": (22, None), "pipe2": (293, 59), "dup": (32, 23), "dup2": (33, None),
        "dup3": (292, 24), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
        "wait4": (61, 260), "waitid": (247, 95), "exit": (60, 93), "exit_group": (231, 94),
    },
    "reports a crash; ends a check that hangs": {
        "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
        "restart_syscall": (219, 128), "kill": (62, 129), "tgkill": (234, 131),
    },
    "reads the clock, sleeps, draws random numbers, asks for the type of the machine": {
        "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169),
        "time": (201, None), "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "getrandom": (318, 278),
        "uname": (63, 160), "sysinfo": (99, 179), "getrusage": (98, 165), "times": (100, 153),
        "getrlimit": (97, 163), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
        "getegid": (108, 177),
    },
}  # fmt: skip


@dataclass(frozen=True)
class CallRule:
    """Allow a system call, either always or depending on one argument.

    A bitwise AND with `mask` is applied to the lower half of the argument. If `allowed` is set, only the values in it
    are allowed. If `refused` is set, all values except these are allowed. If neither is set, every value is allowed. A
    call with a forbidden value fails with EPERM.
    """

    name: str
    numbers: tuple[int | None, int | None]
    argument: int = 0
    mask: int = 0xFFFFFFFF
    allowed: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()


# Calls that a run needs only with some arguments.
_RULES = (
    # Allow creating a thread (pthread_create), and two ways to fork. Forbid new namespaces, and vfork, because a run
    # starts no programs.
    CallRule("clone", (56, 220), allowed=(0x003D0F00, 0x01200011, 0x11)),
    # Refuse shared anonymous memory, which remains after it is unmapped, and huge pages, because no limit counts them.
    CallRule("mmap", (9, 222), 3, mask=0x01 | 0x20 | 0x40000, allowed=(0, 0x01, 0x20)),
    # With MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE and MADV_NOHUGEPAGE, allocators return memory or request large pages.
    CallRule("madvise", (28, 233), 2, allowed=(4, 8, 14, 15)),
    # Require FUTEX_PRIVATE_FLAG. Without it, a futex may be in a file's page, so two runs with the same library could
    # communicate.
    CallRule("futex", (202, 98), 1, mask=0x80, allowed=(0x80,)),
    # Refuse O_DIRECT, which bypasses the page cache.
    CallRule("open", (2, None), 1, mask=0x4000, allowed=(0,)),
    CallRule("openat", (257, None), 2, mask=0x4000, allowed=(0,)),
    CallRule("openat", (None, 56), 2, mask=0x10000, allowed=(0,)),
    # Allow F_DUPFD, F_GETFD, F_SETFD, F_GETFL and F_DUPFD_CLOEXEC. This excludes leases, locks, owners, notices, seals
    # and pipe sizes.
    CallRule("fcntl", (72, 25), 1, allowed=(0, 1, 2, 3, 1030)),
    # TCGETS and TCGETS2 ask whether a file is a terminal. Python's `open` needs FIOCLEX and FIONCLEX.
    CallRule("ioctl", (16, 29), 1, allowed=(0x5401, 0x802C542A, 0x5451, 0x5450)),
    # PR_SET_NAME and PR_GET_NAME name a thread; PR_SVE_GET_VL asks for the size of an Arm processor's registers.
    CallRule("prctl", (157, 167), allowed=(15, 16, 51)),
    # With ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM and ARCH_REQ_XCOMP_PERM, oneDNN requests the matrix registers (AMX).
    CallRule("arch_prctl", (158, None), allowed=(0x1021, 0x1022, 0x1023)),
    # A run must not change the limits of another process, such as the launcher.
    CallRule("prlimit64", (302, 261), allowed=(0,)),
    # Refuse a handler for SIGCHLD, because if a process ignores SIGCHLD, the processor time of its children is lost.
    # The filter cannot read which handler is set, because the argument points to memory.
    CallRule("rt_sigaction", (13, 134), refused=(17,)),
)


def rules(machine: str) -> dict[int, CallRule]:
    """Return {number of a call: rule} for x86_64 or aarch64. Raises `KeyError` for other processors."""
    if machine not in ARCHITECTURES:
        raise KeyError(machine)
    column = list(ARCHITECTURES).index(machine)
    whole = (CallRule(name, numbers) for calls in _ALLOWED.values() for name, numbers in calls.items())
    return {number: rule for rule in (*whole, *_RULES) if (number := rule.numbers[column]) is not None}


_LOAD_WORD, _AND, _RETURN = 0x20, 0x54, 0x06  # BPF_LD|W|ABS, BPF_ALU|AND|K, BPF_RET|K
_JUMP_EQUAL, _JUMP_NOT_BELOW, _JUMP_ALWAYS = 0x15, 0x35, 0x05  # BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_JMP|JA
_KILL_PROCESS, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
# Offsets in struct seccomp_data. Each of the six arguments of a call has 8 bytes.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


@cache
def filter_program(machine: str) -> bytes:
    """Return the filter for x86_64 or aarch64. Raises `KeyError` for another processor.

    A call in another calling convention (i386, x32) kills the process, because its numbers mean different calls.
    """
    kill = _instruction(_RETURN, _KILL_PROCESS)
    parts = [
        _instruction(_LOAD_WORD, _ARCHITECTURE),
        _instruction(_JUMP_EQUAL, ARCHITECTURES[machine], if_true=1),
        kill,
        _instruction(_LOAD_WORD, _NUMBER),
    ]
    if machine == "x86_64":
        parts += [_instruction(_JUMP_NOT_BELOW, X32_BIT, if_false=1), kill]
    parts += [_rule(number, rule) for number, rule in rules(machine).items()]
    return b"".join([*parts, _instruction(_RETURN, _REFUSE | errno.ENOSYS)])


def _rule(number: int, rule: CallRule) -> bytes:
    allow, refuse = _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _REFUSE | errno.EPERM)
    if not (rule.allowed or rule.refused):
        return _instruction(_JUMP_EQUAL, number, if_false=1) + allow
    # Both processors are little-endian, so the lower half of an argument comes first.
    body = [_instruction(_LOAD_WORD, _ARGUMENTS + 8 * rule.argument), _instruction(_AND, rule.mask)]
    values = rule.allowed or rule.refused
    # If the argument has a listed value, jump over the remaining comparisons and over the verdict for unlisted values.
    for left, value in zip(range(len(values), 0, -1), values, strict=True):
        body.append(_instruction(_JUMP_EQUAL, value, if_true=left))
    body += [refuse, allow] if rule.allowed else [allow, refuse]
    return _instruction(_JUMP_EQUAL, number, if_false=len(body)) + b"".join(body)
