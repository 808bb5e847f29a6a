"""The command line: watch an unmodified script in a child process, and show the findings."""

import argparse
import sys
from pathlib import Path

from trainwreck import __version__
from trainwreck.finding import DEFAULT_STEPS, Finding
from trainwreck.places import Place
from trainwreck.runs import watch_script

_ALARM, _USAGE, _FAULT, _INTERRUPTED = 1, 2, 3, 130


def main(arguments: list[str]) -> int:
    """Run the command, and return its exit status.

    It is 1 if a check found an alarm, 2 for wrong use and for a script that fails or makes no update, 3 for a bug in
    trainwreck, 130 after Ctrl-C, and otherwise 0.
    """
    options = _parser().parse_args(arguments)
    script = Path(options.script)
    if not script.is_file():
        print(f"There is no file {script}: name a training script.", file=sys.stderr)
        return _USAGE
    try:
        found = watch_script(script, options.arguments, options.steps)
    except KeyboardInterrupt:
        return _INTERRUPTED
    if found is None:
        print("The watched process ended without a result.", file=sys.stderr)
        return _FAULT
    findings = [Finding(**{**one, "place": Place(**one["place"])}) for one in found["findings"]]
    from trainwreck.show import report_lines, to_json  # imports torch: not before the child has started

    if options.json:
        print(to_json(findings, found["errors"], found["steps"], __version__))
    else:
        for line in report_lines(findings, found["errors"], found["steps"]):
            print(line)
    if found["failure"] or not found["steps"]:
        why = found["failure"].strip() or "the script ended without an update of an optimizer"
        print(f"{script} could not be watched to the end: {why}", file=sys.stderr)
    if any(finding.level == "alarm" for finding in findings):
        return _ALARM
    if found["errors"]:
        return _FAULT
    return _USAGE if found["failure"] or not found["steps"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainwreck",
        description="Watch the first updates of a training script, and report faults. The script needs no change.",
        epilog="Exit status: 1 if a check found an alarm, 2 if the script fails or makes no update, otherwise 0.",
    )
    parser.add_argument("--steps", type=_positive, default=DEFAULT_STEPS, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of text")
    parser.add_argument("--version", action="version", version=f"trainwreck {__version__}")
    parser.add_argument("script", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the script")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
