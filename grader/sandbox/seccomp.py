"""The seccomp filter: which system calls the sandbox refuses, as a classic BPF program.

Namespaces leave these calls open. The program is one short pattern repeated, so it is written here; pyseccomp on PyPI
needs libseccomp, which is not on every machine. Layout and constants are from linux/seccomp.h, linux/filter.h and
linux/bpf_common.h.
"""

import errno
import struct
from dataclasses import dataclass

# The kernel's numbers for the calling conventions (linux/audit.h).
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# On x86_64, numbers from here on belong to the x32 convention.
X32_BIT = 0x40000000

# The filter answers newer calls as an older kernel would, and programs fall back. This is mseal, of Linux 6.10.
NEWEST = 462

# Calls that are refused with any arguments: numbers on x86_64 and aarch64 (arch/x86/entry/syscalls/syscall_64.tbl,
# asm-generic/unistd.h), None if the processor has no such call.
_ANY_ARGUMENTS: dict[int, dict[str, tuple[int | None, int | None]]] = {
    errno.EPERM: {
        # no namespace isolates keyrings
        "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
        # another process's memory, files and identity
        "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
        "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
        "process_mrelease": (448, 448),
        # the file system and the namespaces around it
        "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
        "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
        "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "statmount": (457, 457),
        "listmount": (458, 458), "unshare": (272, 97), "setns": (308, 268),
        "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
        "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
        # parts of the kernel that are large targets and that no experiment needs
        "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
        "lookup_dcookie": (212, 18), "vmsplice": (278, 75), "modify_ldt": (154, None), "uselib": (134, None),
        "migrate_pages": (256, 238), "move_pages": (279, 239), "mbind": (237, 235),
        "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450),
        # the machine itself
        "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
        "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "syslog": (103, 116),
        "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60),
        "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112),
        "adjtimex": (159, 171), "clock_adjtime": (305, 266), "iopl": (172, None), "ioperm": (173, None),
        "vhangup": (153, 58),
        # a run must not starve the launcher
        "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
        "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    },
    # programs fall back if the kernel does not know the call
    errno.ENOSYS: {
        "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
        # its flags are in memory, where a filter cannot read them; glibc falls back to clone
        "clone3": (435, 435),
        # memory that no limit counts
        "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
        "shmctl": (31, 195), "shmdt": (67, 197), "msgget": (68, 186), "semget": (64, 190),
        "mq_open": (240, 180),
    },
    # No sockets of any family, for the network or for this machine: AF_VSOCK, AF_NETLINK, AF_PACKET and AF_ALG reach
    # the host, and AF_UNIX has had security holes.
    errno.EAFNOSUPPORT: {"socket": (41, 198), "socketpair": (53, 199)},
}  # fmt: skip

_SOME_ARGUMENTS = {
    "clone": (56, 220), "mmap": (9, 222), "personality": (135, 92), "prlimit64": (302, 261), "ioctl": (16, 29),
    "rt_sigaction": (13, 134),
}  # fmt: skip
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h).
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_SHARED_ANONYMOUS = 0x01 | 0x20  # MAP_SHARED (and MAP_SHARED_VALIDATE, which is 3) with MAP_ANONYMOUS
_ONLY_ASK = 0xFFFFFFFF
_SIGCHLD = 17  # on both processors
_TYPE_INTO_TERMINALS = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX


@dataclass(frozen=True)
class Rule:
    """Refuse a call with an error, always or by the lower half of one argument, masked.

    `refused` lists the values to refuse, or else `allowed` the only ones to allow; without both, refuse every call.
    """

    name: str
    number: int
    error: int
    argument: int = 0
    mask: int = 0xFFFFFFFF
    refused: tuple[int, ...] = ()
    allowed: tuple[int, ...] = ()


def rules(machine: str) -> list[Rule]:
    """Return the rules for x86_64 or aarch64. Raises `KeyError` for any other processor."""
    if machine not in ARCHITECTURES:
        raise KeyError(machine)
    column = list(ARCHITECTURES).index(machine)
    refused = [
        Rule(name, number, error)
        for error, calls in _ANY_ARGUMENTS.items()
        for name, numbers in calls.items()
        if (number := numbers[column]) is not None
    ]
    here = {name: numbers[column] for name, numbers in _SOME_ARGUMENTS.items()}
    return [
        *refused,
        Rule("clone", here["clone"], errno.EPERM, mask=_NAMESPACES, allowed=(0,)),
        # Such memory stays when it is unmapped, and no limit counts it.
        Rule("mmap", here["mmap"], errno.EPERM, 3, mask=_SHARED_ANONYMOUS, refused=(_SHARED_ANONYMOUS,)),
        Rule("personality", here["personality"], errno.EPERM, allowed=(0, _ONLY_ASK)),
        # A run must not change the limits of another process, such as the launcher.
        Rule("prlimit64", here["prlimit64"], errno.EPERM, allowed=(0,)),
        # A process that ignores SIGCHLD makes its children vanish with their processor time. The handler is in memory,
        # where a filter cannot read it, so no run may set any. Torch's loader processes (which need sockets too)
        # and the `wait` of some shells fail; no experiment needs them.
        Rule("rt_sigaction", here["rt_sigaction"], errno.EPERM, refused=(_SIGCHLD,)),
        Rule("ioctl", here["ioctl"], errno.EPERM, 1, refused=_TYPE_INTO_TERMINALS),
    ]


_LOAD_WORD, _JUMP_EQUAL, _JUMP_ABOVE = 0x20, 0x15, 0x25  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGT|K
_JUMP_NOT_BELOW, _JUMP_ALWAYS = 0x35, 0x05  # BPF_JMP|JGE|K, BPF_JMP|JA
_AND, _RETURN = 0x54, 0x06  # BPF_ALU|AND|K, BPF_RET|K
_KILL_PROCESS, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
# Offsets in struct seccomp_data; each of the six arguments has 8 bytes.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def filter_program(machine: str) -> bytes:
    """Return the filter for x86_64 or aarch64. Raises `KeyError` for another processor.

    A call by another convention (i386, x32) kills the process, because its numbers mean other calls.
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
    parts += [_instruction(_JUMP_ABOVE, NEWEST, if_false=1), _instruction(_RETURN, _REFUSE | errno.ENOSYS)]
    parts += [_rule(rule) for rule in rules(machine)]
    return b"".join([*parts, _instruction(_RETURN, _ALLOW)])


def _rule(rule: Rule) -> bytes:
    refuse = _instruction(_RETURN, _REFUSE | rule.error)
    if not (rule.refused or rule.allowed):
        return _instruction(_JUMP_EQUAL, rule.number, if_false=1) + refuse
    # Both processors are little-endian: the lower half of an argument comes first.
    body = [_instruction(_LOAD_WORD, _ARGUMENTS + 8 * rule.argument), _instruction(_AND, rule.mask)]
    values = rule.refused or rule.allowed
    # A listed value jumps over the next instruction that is not a comparison: `refuse`, or a jump over it.
    for left, value in zip(range(len(values), 0, -1), values, strict=True):
        body.append(_instruction(_JUMP_EQUAL, value, if_true=left))
    if rule.refused:
        body.append(_instruction(_JUMP_ALWAYS, 1))
    body += [refuse, _instruction(_LOAD_WORD, _NUMBER)]
    return _instruction(_JUMP_EQUAL, rule.number, if_false=len(body)) + b"".join(body)
