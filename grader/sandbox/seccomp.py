"""The seccomp filter as a classic BPF program, for what namespaces leave open.

Written out here rather than with a library: what PyPI offers (pyseccomp) calls libseccomp, which is not
everywhere, and the program is one short pattern repeated. Layout and constants are from linux/seccomp.h,
linux/filter.h and linux/bpf_common.h.
"""

import errno
import struct

from grader.sandbox.syscalls import ARCHITECTURES, NEWEST, X32_BIT, Rule, rules

_LOAD_WORD, _JUMP_EQUAL, _JUMP_ABOVE = 0x20, 0x15, 0x25  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGT|K
_JUMP_NOT_BELOW, _AND, _RETURN = 0x35, 0x54, 0x06  # BPF_JMP|JGE|K, BPF_ALU|AND|K, BPF_RET|K
_KILL_PROCESS, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
# struct seccomp_data: the number, the architecture, the instruction pointer, then six arguments of 8 bytes.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def filter_program(machine: str) -> bytes:
    """Return the filter for x86_64 or aarch64. Raises `KeyError` for another processor.

    Calls by another convention (i386, x32) kill the process: their numbers mean other calls.
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
    if rule.mask is None and not rule.allowed:
        return _instruction(_JUMP_EQUAL, rule.number, if_false=1) + refuse
    # Both processors are little-endian: the lower half of an argument comes first.
    body = [_instruction(_LOAD_WORD, _ARGUMENTS + 8 * rule.argument)]
    if rule.mask is not None:
        body.append(_instruction(_AND, rule.mask))
        if rule.equals is None:
            body.append(_instruction(_JUMP_EQUAL, 0, if_true=1))
        else:
            body.append(_instruction(_JUMP_EQUAL, rule.equals, if_false=1))
    for left, value in zip(range(len(rule.allowed), 0, -1), rule.allowed, strict=True):
        body.append(_instruction(_JUMP_EQUAL, value, if_true=left))
    body.append(refuse)
    body.append(_instruction(_LOAD_WORD, _NUMBER))
    return _instruction(_JUMP_EQUAL, rule.number, if_false=len(body)) + b"".join(body)
