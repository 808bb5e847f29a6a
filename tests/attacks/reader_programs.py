"""Attacks on the parsers of experiments and logs: deep nesting, huge values, and invalid numbers."""

import json
from collections.abc import Callable

from attacks.attack import Attack, Base, Expected, members_of, with_members

Build = Callable[[Base], bytes]
_LOG = "runs/fixed/metrics.log"
_META = "runs/fixed/checkpoint.pt.meta.json"


def _program(text: str, behind: str = "") -> Build:
    """Replace the broken experiment with `text`, or append `behind` to it."""

    def build(base: Base) -> bytes:
        source = text.encode() or members_of(base.untouched)["experiment.py"] + behind.encode()
        return with_members(base.untouched, {"experiment.py": source}, student="x")

    return build


def _logged(text: str | bytes) -> Build:
    """The correct fix with this log of the fixed run."""
    log = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return lambda base: with_members(base.reference, {_LOG: log}, student="x")


def _last(**values: object) -> Build:
    """Return a last line of the log with other values."""

    def build(base: Base) -> bytes:
        *lines, last = members_of(base.reference)[_LOG].decode().splitlines()
        return _logged("\n".join([*lines, json.dumps({**json.loads(last), **values}), ""]))(base)

    return build


def _with_meta(text: bytes) -> Build:
    return lambda base: with_members(base.reference, {_META: text}, student="x")


def _tables(depth: int) -> Build:
    return _logged('{"step": 0, "activations": ' + '{"a":' * depth + "1" + "}" * (depth + 1))


# Experiments that do not run. Each needs a short replay.
_PROGRAMS = {
    "parentheses": "x = " + "(" * 10_000 + ")" * 10_000,
    "brackets_unclosed": "[" * 60_000,
    "signs": "x = " + "-" * 60_000 + "1",
    "sum": "x = " + "1+" * 30_000 + "1",
    "attributes": "x" + ".a" * 30_000,
    "calls": "x" + "()" * 30_000,
    "decorators": "@a\n" * 20_000 + "def f(): pass\n",
    "lambdas": "lambda:" * 8_000 + "0",
    "else_if": "if 0: pass\n" + "elif 0: pass\n" * 4_900,
    "blocks": "".join(" " * n + "if 1:\n" for n in range(99)) + " " * 99 + "pass\n",
    "f_strings": "x = " + "f'{" * 5_000 + "}'" * 5_000,
    "format_specs": "x = f'{a" + ":{b" * 10_000 + "}" * 10_000 + "}'",
    "integer": "x = " + "9" * 60_000,
    "repeated_text": "x = 'a' * 10 ** 12\n",
    "cases": "match 0:\n" + " case 0: 0\n" * 4_000,
    "stars": "*" + "(*" * 9_000 + "a," + ")," * 9_000 + " = 0",
    "continued": "x = 1" + "\\\n" * 30_000,
    "nul_in_source": "x = 1\0\n",
    "form_feeds": "if 1:\f\r\t\x0bx\x1c\x1d\x85\u2028" * 500,
    "normal_forms": "\u2115\uff49\u017f = 1\n" * 3_000 + "raise\n",
    "power": "x = 9 ** 9 ** 9 ** 9\n",
}
_REJECTED_LOGS = {
    "log_nested": ("a log of nested lists", _logged("[" * 100_000)),
    "log_deep_tables": ("tables 300 deep", _tables(300)),
    "log_deepest_tables": ("tables 950 deep", _tables(950)),
    "log_tables": ("a million empty tables",
        _logged('{"activations":{' + ",".join(f'"{n}":{{}}' for n in range(700_000)) + "}}")),
}  # fmt: skip
_LOGS = {
    "log_digits": ("a loss of a million digits", _logged('{"step": 0, "loss": ' + "9" * 1_000_000 + "}")),
    "log_exponent": ("a loss of 1e999999999", _logged('{"step": 0, "loss": 1e999999999}')),
    "log_nan": ("NaN as JSON does not have it", _logged('{"step": 0, "loss": NaN}')),
    "log_records": ("700,000 records", _logged('{"step":0}\n' * 700_000)),
    "log_one_line": ("one line of 8 MB", _logged('{"x": "' + "x" * 8_000_000 + '"}')),
    "log_not_utf8": ("a log that is no text", _logged(b"\xff\xfe" * 1000)),
    "log_surrogates": ("a log of half characters", _logged('{"step": 0, "\\ud800": 1}')),
    "log_hidden": ("a key that clears the screen", _logged(json.dumps({"step": 0, "\x1b[2J\u202e=1+1": "x"}))),
    "log_last_nan": ("an accuracy that is no number", _last(val_accuracy="NaN")),
    "log_last_huge": ("an accuracy of 1e308", _last(val_accuracy=1e308)),
    "log_epoch": ("an epoch of 10 ** 15", _last(epoch=10**15)),
}
_MARKED = json.dumps({"platform_class": {"golden": False, "device": "\x1b[2J\u202e<script>alert(1)</script>"}})
_LARGE_META = b'{"platform_class": {"golden": true, "device": "cpu", "x": [' + b"[]," * 10_000_000 + b"0]}}"
_SUITE = ("parentheses", "sum")


ATTACKS = (
    *(Attack(id, "reader", f"an experiment without an end: {id}", Expected(("graded",), "did not finish"),
        _program(text), slow=id == "power", in_suite=id in _SUITE) for id, text in _PROGRAMS.items()),
    *(Attack(id, "reader", says, Expected(("rejected",), "which no run writes"), build)
        for id, (says, build) in _REJECTED_LOGS.items()),
    *(Attack(id, "reader", says, Expected(("graded",), "log", gains_over="reference"), build)
        for id, (says, build) in _LOGS.items()),
    Attack("empty_lines", "reader", "60,000 lines of nothing", Expected(("graded",), "edit fixes nothing"),
        _program("", behind="\n" * 60_000)),
    Attack("many_lines", "reader", "100,000 lines", Expected(("rejected",), "shorten it"),
        _program("", behind="\n" * 100_000)),
    Attack("log_too_large", "reader", "a log of 10 MB", Expected(("rejected",), "train for fewer"),
        _logged("\n" * 10**7)),
    Attack("meta_deep", "reader", "provenance of 30,000 brackets", Expected(("graded",), gains_over="reference"),
        _with_meta(b"[" * 30_000)),
    Attack("meta_large", "reader", "provenance that takes 600 MB of memory", Expected(("rejected",), "larger than"),
        _with_meta(_LARGE_META)),
    Attack("meta_hidden", "reader", "a platform that clears the screen",
        Expected(("graded",), "another type of machine", gains_over="reference"), _with_meta(_MARKED.encode()),
        in_suite=False),
)  # fmt: skip
