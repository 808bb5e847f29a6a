"""The filter, twice: its program interpreted call by call, and each refused call made inside the sandbox."""

import errno
import json
import platform
import struct
from collections.abc import Iterator

import pytest
from sandbox_marks import needs_sandbox
from sandboxed import (
    engine,  # noqa: F401 - a fixture
    sandboxed,
)

from grader.sandbox.seccomp import ARCHITECTURES, NEWEST, Rule, filter_program, rules

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


def refused_arguments(rule: Rule) -> Iterator[list[int]]:
    """Yield arguments that a rule is about."""
    before = [0] * rule.argument
    if rule.refused:
        yield from ([*before, value] for value in rule.refused)
    elif rule.mask != 2**32 - 1:
        yield from ([*before, 1 << bit] for bit in range(32) if rule.mask >> bit & 1)
    else:
        yield [*before, 0x0400000]


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_every_rule_refuses_with_its_error(machine: str) -> None:
    for rule in rules(machine):
        for arguments in refused_arguments(rule):
            assert verdict(machine, rule.number, *arguments) == REFUSE | rule.error, rule


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_what_runs_need_is_allowed(machine: str) -> None:
    refused = {rule.number for rule in rules(machine)}
    conditional = {rule.number: rule.name for rule in rules(machine) if rule.refused or rule.allowed}
    for number in range(NEWEST + 1):
        if number not in refused:
            assert verdict(machine, number, 2**32 - 1, 2**32 - 1) == ALLOW
    numbers = {name: number for number, name in conditional.items()}
    assert set(numbers) == {"clone", "mmap", "personality", "prlimit64", "ioctl", "rt_sigaction"}
    # fork, a thread (pthread_create), a private and a file mapping, asking and setting one's own, SIGINT and SIGXFSZ
    for name, arguments in [
        ("clone", [0x01200011]), ("clone", [0x003D0F00]), ("mmap", [0, 4096, 3, 0x22]),
        ("mmap", [0, 4096, 3, 0x01]), ("mmap", [0, 4096, 1, 0x02]), ("personality", [0xFFFFFFFF]),
        ("personality", [0]), ("prlimit64", [0, 7]), ("ioctl", [1, 0x5401]),
        ("rt_sigaction", [2]), ("rt_sigaction", [25]),
    ]:  # fmt: skip
        assert verdict(machine, numbers[name], *arguments) == ALLOW, (name, arguments)


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_whatever_no_rule_names_is_refused_or_kills(machine: str) -> None:
    mmap = next(rule.number for rule in rules(machine) if rule.name == "mmap")
    for flags in (0x21, 0x23, 0x8021, 0x40021):  # memory that no limit counts, whatever else is asked
        assert verdict(machine, mmap, 0, 4096, 3, flags) == REFUSE | errno.EPERM
    for number in (NEWEST + 1, 0x3FFFFFFF):
        assert verdict(machine, number) == REFUSE | errno.ENOSYS
    assert verdict(machine, 1, architecture=0x40000003) == KILL  # AUDIT_ARCH_I386
    assert verdict(machine, 1, architecture=0x40000028) == KILL  # AUDIT_ARCH_ARM
    if machine == "x86_64":
        assert verdict(machine, 0x40000000 | 39) == KILL


@needs_sandbox
@in_both_engines
@on_this_processor
def test_every_refused_call_is_refused_in_the_sandbox() -> None:
    calls = [
        (rule.name, rule.number, arguments, rule.error)
        for rule in rules(here)
        for arguments in refused_arguments(rule)
    ]
    code = f"""
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
found = []
for name, number, arguments, error in json.loads({json.dumps(json.dumps(calls))}):
    ctypes.set_errno(0)
    padded = [ctypes.c_ulong(value) for value in (arguments + [0] * 6)[:6]]
    result = libc.syscall(ctypes.c_long(number), *padded)
    if (result, ctypes.get_errno()) != (-1, error):
        found.append([name, arguments, result, ctypes.get_errno()])
print(json.dumps([len({calls!r}), found]))
"""
    assert json.loads(sandboxed(code).stdout) == [len(calls), []]
