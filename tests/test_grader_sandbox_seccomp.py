"""The filter, in two ways: interpret its program for each call, and make each refused call inside the sandbox."""

import errno
import json
import platform
import struct

import pytest
from helpers.sandbox_marks import needs_sandbox
from helpers.sandboxed import (
    engine,  # noqa: F401 - a fixture
    sandboxed,
)

from grader.sandbox.seccomp import ARCHITECTURES, CallRule, filter_program, rules

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
in_both_engines = pytest.mark.usefixtures("engine")
here = platform.machine()
on_this_processor = pytest.mark.skipif(here not in ARCHITECTURES, reason="no filter for this processor")


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Interpret the filter as the kernel does (Documentation/networking/filter.rst)."""
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *padded)
    program = list(struct.iter_unpack("=HBBI", filter_program(machine)))
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = program[position]
        position += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return int(value)
        elif code == 0x05:
            position += value
        else:
            truth = {0x15: accumulator == value, 0x25: accumulator > value, 0x35: accumulator >= value}[code]
            position += if_true if truth else if_false


def arguments_of(rule: CallRule, value: int) -> list[int]:
    return [*[0] * rule.argument, value]


def refused_values(rule: CallRule) -> list[int]:
    """Return values that a rule refuses: its refused values, or all values one bit away from an allowed value."""
    near = {value ^ 1 << bit for value in rule.allowed for bit in range(32) if rule.mask >> bit & 1}
    return sorted(near - set(rule.allowed)) or list(rule.refused)


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_what_is_not_listed_is_unknown_or_kills(machine: str) -> None:
    known = rules(machine)
    for number in set(range(600)) - known.keys() | {0x3FFFFFFF}:
        assert verdict(machine, number, 2**32 - 1, 2**32 - 1) == REFUSE | errno.ENOSYS
    assert verdict(machine, 1, architecture=0x40000003) == KILL  # AUDIT_ARCH_I386
    assert verdict(machine, 1, architecture=0x40000028) == KILL  # AUDIT_ARCH_ARM
    if machine == "x86_64":
        assert verdict(machine, 0x40000000 | 39) == KILL


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_a_listed_call_is_allowed_within_its_rule(machine: str) -> None:
    for number, rule in rules(machine).items():
        for value in rule.allowed or (set(range(65)) - set(rule.refused)):
            assert verdict(machine, number, *arguments_of(rule, value)) == ALLOW, rule
        for value in refused_values(rule):
            assert verdict(machine, number, *arguments_of(rule, value)) == REFUSE | errno.EPERM, (rule, value)


# Training never needs these calls, and each has once allowed a run to do harm.
NEVER = (
    "execve execveat socket socketpair ptrace mount unshare setns clone3 bpf flock io_setup io_uring_setup add_key"
    " keyctl inotify_init1 fanotify_init userfaultfd perf_event_open memfd_create shmget msgget semget mq_open"
    " timer_create epoll_create1 eventfd2 signalfd4 timerfd_create setxattr fsetxattr vmsplice pidfd_open"
    " process_vm_readv"
)


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_the_table_holds_none_of_the_dangerous_calls(machine: str) -> None:
    assert not {rule.name for rule in rules(machine).values()} & set(NEVER.split())
    # Leases, locks, owners, notices, pipe sizes; a namespace, vfork; shared memory without a file, huge pages.
    for name, argument, values in (
        ("fcntl", 1, (4, 5, 6, 7, 8, 10, 36, 37, 38, 1024, 1026, 1031, 1033)),
        ("clone", 0, (0x10000011, 0x20000011, 0x4111, 0x7E020011)),
        ("mmap", 3, (0x21, 0x23, 0x8021, 0x40022)),
        ("futex", 1, (0, 1, 9, 10)), ("madvise", 2, (9, 12, 21, 100)), ("prlimit64", 0, (1,)),
    ):  # fmt: skip
        (number,) = (number for number, rule in rules(machine).items() if rule.name == name)
        for value in values:
            assert verdict(machine, number, *[0] * argument, value) == REFUSE | errno.EPERM, (name, value)


@needs_sandbox
@in_both_engines
@on_this_processor
def test_every_call_is_refused_in_the_sandbox_as_in_the_table() -> None:
    known = rules(here)
    # 335 and 336 on x86_64 are for kernel probes. From Linux 6.11 on, they kill the calling process.
    calls: list[tuple[int, list[int], int]] = [
        (number, [], errno.ENOSYS) for number in range(500) if number not in {335, 336, *known}
    ]
    calls += [
        (number, arguments_of(rule, value), errno.EPERM)
        for number, rule in known.items()
        for value in refused_values(rule)
    ]
    code = f"""
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
found = []
for number, arguments, error in {calls!r}:
    ctypes.set_errno(0)
    padded = [ctypes.c_ulong(value) for value in (arguments + [0] * 6)[:6]]
    result = libc.syscall(ctypes.c_long(number), *padded)
    if (result, ctypes.get_errno()) != (-1, error):
        found.append([number, arguments, result, ctypes.get_errno()])
print(json.dumps([len({calls!r}), found]))
"""
    result = sandboxed(code)
    assert result.stdout, result
    assert json.loads(result.stdout) == [len(calls), []]
