"""Which system calls the sandbox refuses, and their numbers on the processors that it knows."""

import errno
from dataclasses import dataclass

# The kernel's own names for the calling conventions (linux/audit.h).
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# On x86_64, numbers from here on are calls of the x32 convention.
X32_BIT = 0x40000000

# Newer calls than this are answered as an older kernel would: programs fall back. mseal is of Linux 6.10.
NEWEST = 462

# Name: numbers on x86_64 and aarch64 (arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h); None
# where the processor has no such call. Every one of these is refused whatever its arguments.
_ANY_ARGUMENTS: dict[int, dict[str, tuple[int | None, int | None]]] = {
    errno.EPERM: {
        # keyrings are not in any namespace
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
        # parts of the kernel with a large surface and no use for an experiment
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
        # the launcher must not be starved
        "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
        "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    },
    # programs fall back where the kernel seems not to know the call
    errno.ENOSYS: {
        "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
        # its flags lie in memory, where a filter cannot see them; glibc falls back to clone
        "clone3": (435, 435),
        # memory that no limit counts
        "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
        "shmctl": (31, 195), "shmdt": (67, 197), "msgget": (68, 186), "semget": (64, 190),
        "mq_open": (240, 180),
    },
    # An experiment talks to nobody: not to the network, not to the machine's other kinds of sockets
    # (AF_VSOCK, AF_NETLINK, AF_PACKET, AF_ALG), and AF_UNIX has had holes of its own.
    errno.EAFNOSUPPORT: {"socket": (41, 198), "socketpair": (53, 199)},
}  # fmt: skip

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h).
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_SHARED_ANONYMOUS = 0x01 | 0x20  # MAP_SHARED (and MAP_SHARED_VALIDATE, which is 3) with MAP_ANONYMOUS
_ONLY_ASK = 0xFFFFFFFF
_SIGCHLD = 17  # on both processors


@dataclass(frozen=True)
class Rule:
    """Refuse a call with an error, always or by the lower half of one argument.

    With `mask`, it is refused if the masked argument is not 0 (`equals` None) or is `equals`; with `allowed`,
    if the argument is none of these.
    """

    name: str
    number: int
    error: int
    argument: int = 0
    mask: int | None = None
    equals: int | None = None
    allowed: tuple[int, ...] = ()


def rules(machine: str) -> list[Rule]:
    """Return the rules for x86_64 or aarch64. Raises `KeyError` for any other processor."""
    column = list(ARCHITECTURES).index(machine) if machine in ARCHITECTURES else None
    if column is None:
        raise KeyError(machine)
    refused = [
        Rule(name, number, error)
        for error, calls in _ANY_ARGUMENTS.items()
        for name, numbers in calls.items()
        if (number := numbers[column]) is not None
    ]
    numbers = {
        "clone": (56, 220), "mmap": (9, 222), "personality": (135, 92), "prlimit64": (302, 261), "ioctl": (16, 29),
        "rt_sigaction": (13, 134),
    }  # fmt: skip
    here = {name: pair[column] for name, pair in numbers.items()}
    return [
        *refused,
        Rule("clone", here["clone"], errno.EPERM, argument=0, mask=_NAMESPACES),
        # Memory that stays when it is unmapped, and that no limit counts.
        Rule("mmap", here["mmap"], errno.EPERM, argument=3, mask=_SHARED_ANONYMOUS, equals=_SHARED_ANONYMOUS),
        Rule("personality", here["personality"], errno.EPERM, argument=0, allowed=(0, _ONLY_ASK)),
        # The limits of another process: of the launcher.
        Rule("prlimit64", here["prlimit64"], errno.EPERM, argument=0, allowed=(0,)),
        # Whoever ignores this signal has children that vanish unwaited, and their processor time with them. How it
        # is handled lies in memory, where a filter cannot see it: nobody may say. It costs torch's loader processes
        # (which need sockets besides) and the `wait` of some shells; no experiment needs either.
        Rule("rt_sigaction", here["rt_sigaction"], errno.EPERM, argument=0, mask=_ONLY_ASK, equals=_SIGCHLD),
        # Typing into a terminal: TIOCSTI and TIOCLINUX.
        Rule("ioctl", here["ioctl"], errno.EPERM, argument=1, mask=_ONLY_ASK, equals=0x5412),
        Rule("ioctl", here["ioctl"], errno.EPERM, argument=1, mask=_ONLY_ASK, equals=0x541C),
    ]
