"""Attacks on what reads experiments and logs: nested, huge, and numbers that are none."""

import json
from collections.abc import Callable

from attacks.attack import Attack, Base, Expected, members_of

_LOG = "runs/fixed/metrics.log"
_META = "runs/fixed/checkpoint.pt.meta.json"


def _program(text: str) -> Callable[[Base], bytes]:
    """The broken experiment with this behind it."""

    def build(base: Base) -> bytes:
        source = members_of(base.untouched)["experiment.py"] + text.encode()
        return base.with_members(base.untouched, {"experiment.py": source}, student="x")

    return build


def _in_place(text: str) -> Callable[[Base], bytes]:
    return lambda base: base.with_members(base.untouched, {"experiment.py": text.encode()}, student="x")


def _logged(change: Callable[[list[str]], str | bytes]) -> Callable[[Base], bytes]:
    """The right fix with another log of the fixed run, made from the lines of its own."""

    def build(base: Base) -> bytes:
        lines = members_of(base.reference)[_LOG].decode().splitlines()
        text = change(lines)
        log = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return base.with_members(base.reference, {_LOG: log}, student="x")

    return build


def _last(**values: object) -> Callable[[Base], bytes]:
    """A last line of the log that says something else."""
    return _logged(
        lambda lines: "\n".join([*lines[:-1], json.dumps({**json.loads(lines[-1]), **values}), ""])
    )


def _with_meta(text: bytes) -> Callable[[Base], bytes]:
    return lambda base: base.with_members(base.reference, {_META: text}, student="x")


_NO_RUN = Expected(("graded",), "did not come to its end")
_REFUSED = Expected(("rejected",), "shorten it")


def _unread(id: str, says: str, build: Callable[[Base], bytes], *, in_suite: bool = False) -> Attack:
    """An experiment that does not run; each costs a replay, though a short one."""
    return Attack(id, "reader", says, _NO_RUN, build, in_suite=in_suite)


def _no_log(id: str, says: str, build: Callable[[Base], bytes]) -> Attack:
    return Attack(id, "reader", says, Expected(("rejected",), "not one that a run writes"), build)


def _log(id: str, says: str, build: Callable[[Base], bytes], because: str = "log") -> Attack:
    return Attack(id, "reader", says, Expected(("graded",), because, gains_over="reference"), build)


_PROGRAMS = (
    _unread("parentheses", "10,000 nested parentheses", _program("x = " + "(" * 10_000 + ")" * 10_000),
        in_suite=True),
    _unread("brackets_unclosed", "60,000 open brackets", _in_place("[" * 60_000)),
    _unread("signs", "60,000 minus signs before a number", _in_place("x = " + "-" * 60_000 + "1")),
    _unread("sum", "a sum of 30,000 numbers", _in_place("x = " + "1+" * 30_000 + "1"), in_suite=True),
    _unread("attributes", "30,000 attributes of attributes", _in_place("x" + ".a" * 30_000)),
    _unread("dotted_import", "an import with 30,000 dots", _in_place("import a" + ".a" * 30_000)),
    _unread("calls", "30,000 calls of calls", _in_place("x" + "()" * 30_000)),
    _unread("comparisons", "a comparison of 30,000", _in_place("1" + "<1" * 30_000)),
    _unread("decorators", "20,000 decorators", _in_place("@a\n" * 20_000 + "def f(): pass\n")),
    _unread("lambdas", "8,000 lambdas in each other", _in_place("lambda:" * 8_000 + "0")),
    _unread("else_if", "6,000 branches of one if", _in_place("if 0: pass\n" + "elif 0: pass\n" * 4_900)),
    _unread("blocks", "99 blocks in each other",
        _in_place("".join(" " * n + "if 1:\n" for n in range(99)) + " " * 99 + "pass\n")),
    _unread("f_strings", "f-strings in f-strings", _in_place("x = " + "f'{" * 5_000 + "}'" * 5_000)),
    _unread("f_string_parts", "an f-string of 15,000 parts", _in_place("x = f'" + "{a}" * 15_000 + "'")),
    _unread("format_specs", "format specifications in each other",
        _in_place("x = f'{a" + ":{b" * 10_000 + "}" * 10_000 + "}'")),
    _unread("integer", "an integer of 60,000 digits", _in_place("x = " + "9" * 60_000)),
    _unread("hexadecimal", "a hexadecimal number of 60,000 digits", _in_place("x = 0x" + "f" * 60_000)),
    Attack("power", "reader", "a power that nobody lives to see", Expected(("graded",),
        "did not come to its end"), _in_place("x = 9 ** 9 ** 9 ** 9\n"), slow=True),
    _unread("repeated_text", "a text repeated 10 ** 12 times", _in_place("x = 'a' * 10 ** 12\n")),
    _unread("cases", "4,000 cases of one match", _in_place("match 0:\n" + " case 0: 0\n" * 4_000)),
    _unread("stars", "starred targets in each other",
        _in_place("*" + "(*" * 9_000 + "a," + ")," * 9_000 + " = 0")),
    _unread("continued", "30,000 continued lines", _in_place("x = 1" + "\\\n" * 30_000)),
    Attack("empty_lines", "reader", "60,000 lines of nothing", Expected(("graded",), "nothing was fixed"),
        _program("\n" * 60_000)),
    _unread("nul_in_source", "a NUL in the experiment", _in_place("x = 1\0\n")),
    _unread("form_feeds", "form feeds, tabs and carriage returns for lines",
        _in_place("if 1:\f\r\t\x0bx\x1c\x1d\x85\u2028" * 500)),
    _unread("normal_forms", "names that Python takes for others",
        _in_place("\u2115\uff49\u017f = 1\n" * 3_000 + "raise\n")),
    Attack("many_lines", "reader", "100,000 lines", _REFUSED, _program("\n" * 100_000)),
    Attack("expression", "reader", "an expression of 1 MB", _REFUSED, _in_place("x = " + "1+" * 500_000 + "1")),
)  # fmt: skip

_LOGS = (
    _no_log("log_nested", "a log of nested lists", _logged(lambda lines: "[" * 100_000)),
    _no_log("log_deep_tables", "tables 300 deep",
        _logged(lambda lines: '{"step": 0, "activations": ' + '{"a":' * 300 + "1" + "}" * 301)),
    _no_log("log_deeper_tables", "tables 480 deep",
        _logged(lambda lines: '{"step": 0, "activations": ' + '{"a":' * 480 + "1" + "}" * 481)),
    _no_log("log_deepest_tables", "tables 950 deep",
        _logged(lambda lines: '{"step": 0, "activations": ' + '{"a":' * 950 + "1" + "}" * 951)),
    _log("log_digits", "a loss of a million digits",
        _logged(lambda lines: '{"step": 0, "loss": ' + "9" * 1_000_000 + "}")),
    _log("log_exponent", "a loss of 1e999999999", _logged(lambda lines: '{"step": 0, "loss": 1e999999999}')),
    _log("log_nan", "NaN as JSON does not have it", _logged(lambda lines: '{"step": 0, "loss": NaN}')),
    _log("log_records", "700,000 records", _logged(lambda lines: '{"step":0}\n' * 700_000)),
    _no_log("log_tables", "a million empty tables",
        _logged(lambda lines: '{"activations":{' + ",".join(f'"{n}":{{}}' for n in range(700_000)) + "}}")),
    _log("log_one_line", "one line of 8 MB", _logged(lambda lines: '{"x": "' + "x" * 8_000_000 + '"}')),
    _log("log_not_utf8", "a log that is no text", _logged(lambda lines: b"\xff\xfe" * 1000)),
    _log("log_surrogates", "a log of half characters", _logged(lambda lines: '{"step": 0, "\\ud800": 1}')),
    _log("log_hidden", "a key that clears the screen", _logged(lambda lines: json.dumps({"step": 0,
        "\x1b[2J\u202e=1+1": "x"}))),
    _log("log_last_nan", "an accuracy that is no number", _last(val_accuracy="NaN")),
    _log("log_last_huge", "an accuracy of 1e308", _last(val_accuracy=1e308)),
    _log("log_epoch", "an epoch of 10 ** 15", _last(epoch=10**15)),
    Attack("log_too_large", "reader", "a log of 10 MB", Expected(("rejected",), "train for less"),
        _logged(lambda lines: "\n" * 10**7)),
    Attack("meta_deep", "reader", "provenance of 30,000 brackets", Expected(("graded",),
        gains_over="reference"), _with_meta(b"[" * 30_000)),
    Attack("meta_large", "reader", "provenance that takes 600 MB of memory", Expected(("rejected",),
        "larger than"),
        _with_meta(b'{"platform_class": {"golden": true, "device": "cpu", "x": [' + b"[]," * 10_000_000 + b"0]}}")),
    Attack("meta_hidden", "reader", "a platform that clears the screen", Expected(("graded",),
        "another platform class", gains_over="reference"),
        _with_meta(json.dumps({"platform_class": {"golden": False,
        "device": "\x1b[2J\u202e<script>alert(1)</script>"}}).encode()), in_suite=False),
)  # fmt: skip

ATTACKS = (*_PROGRAMS, *_LOGS)
