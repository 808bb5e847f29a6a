"""The command line: watch an unmodified script in a child process, and show the findings."""

import argparse
import importlib
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trainwreck import __version__
from trainwreck.finding import DEFAULT_STEPS, Finding, Report, by_level
from trainwreck.places import Place
from trainwreck.runs import watch_script
from trainwreck.settings import Settings, read_settings
from trainwreck.terminal import print_lines, print_message, width_of
from trainwreck.usage import UsageError, did_you_mean

# Modules that need torch are imported inside functions, so that --help and wrong options answer at once.

_ALARM, _USAGE, _FAULT, _INTERRUPTED = 1, 2, 3, 130
_PROGRAM = "python -m trainwreck"
_FEWEST = 24  # updates, of which the second half is enough for a trial


def main(arguments: list[str]) -> int:
    """Run the command, and return its exit status.

    It is 1 if a check found an alarm (with --strict, also for advice), 2 for wrong use and for a script that fails or
    makes no update, 3 for a bug in trainwreck, 130 after Ctrl-C, and otherwise 0. With --write-baseline, findings do
    not count.
    """
    try:
        if arguments[:1] == ["explain"]:
            _import("torch")
            from trainwreck.explain import explain

            explain(arguments[1:])
            return 0
        return _watch(_parse(arguments))
    except UsageError as error:
        print_message(str(error), sys.stderr)
        return _USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _watch(options: argparse.Namespace) -> int:
    """Watch the script, show the report, and return the exit status."""
    _require_files(options)
    settings = read_settings(Path(options.script))
    # The first update of an optimizer imports the second module, which takes two seconds. Forked runs have it already.
    _import("torch", "torch._dynamo")
    from trainwreck import child
    from trainwreck.baseline import Baseline, read_baseline
    from trainwreck.selection import choose

    select, ignore = options.select, options.ignore
    origin = f"{settings.file}: "
    selection = choose(
        settings.select if select is None else ",".join(select),
        settings.ignore if ignore is None else ",".join(ignore),
        (f"{origin}select" if select is None else "--select", f"{origin}ignore" if ignore is None else "--ignore"),
    )
    path = _baseline_path(options, settings)
    baseline = read_baseline(path) if path else Baseline(Path())
    names = [check.name for check in selection.checks]
    steps = options.steps or settings.steps
    found = watch_script(Path(options.script), options.arguments, steps, names, say=_say, fork=child.main)
    if found is None:
        print_message("The watched process ended without a result.", sys.stderr)
        return _FAULT
    findings = by_level(map(_to_finding, found["findings"]))
    kept = selection.keep(findings, options.script)
    new = baseline.drop_known(kept.findings, options.script)
    report = Report(
        script=options.script,
        findings=new,
        errors=found["errors"],
        steps=found["steps"],
        failure=found["failure"].strip(),
        suppressed=kept.suppressed,
        known=len(kept.findings) - len(new),
        losses=found["losses"],
    )
    _show(report, [*kept.remarks, *_short_of_updates(found, steps)], options)
    strict = settings.strict if options.strict is None else options.strict
    if found.get("interrupted"):
        return _INTERRUPTED
    return _status(report, ("alarm", "advice") if strict else ("alarm",), options.write_baseline)


def _short_of_updates(found: dict[str, Any], steps: int) -> Iterator[str]:
    """Yield a remark if the script ended before the watch did, so that its loop could not go on in trials."""
    made = found["steps"]
    if _FEWEST <= made < steps and not found["failure"]:
        yield f"The script made {made} updates, so no trial could follow update {steps}: try --steps {made // 2}."


def _say(sentence: str) -> None:
    """Say at a terminal what the command does next."""
    if sys.stderr.isatty():
        print_message(f"trainwreck: {sentence}", sys.stderr)


def _import(*modules: str) -> None:
    """Import modules. Ctrl-C ends this process meanwhile: numpy would turn a `KeyboardInterrupt` into another error."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for module in modules:
        importlib.import_module(module)
    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _show(report: Report, remarks: Iterable[str], options: argparse.Namespace) -> None:
    """Print the report, and write the files that the user wants.

    Raises `UsageError` if a file cannot be written.
    """
    from trainwreck.baseline import to_baseline
    from trainwreck.formats import render
    from trainwreck.page import page
    from trainwreck.show import report_lines

    print_message("\n".join(remarks), sys.stderr)
    if options.output or options.format == "text":
        print_lines(report_lines(report, width_of(sys.stdout)), sys.stdout)
    else:
        print(render(report, options.format, Path.cwd()))
    if not report.is_complete:
        why = report.failure or "the script ended without an update of an optimizer"
        print_message(f"{report.script} could not be watched to the end: {why}", sys.stderr)
    if options.output:
        _write("--output", options.output, render(report, options.format, Path.cwd()))
    if options.html:
        _write("--html", options.html, page(report))
    if options.write_baseline and report.is_complete:
        text = to_baseline(report.findings, report.script, options.write_baseline.parent)
        _write("--write-baseline", options.write_baseline, text)
        print_message(f"Known findings in {options.write_baseline}: {len(report.findings)}.", sys.stderr)


def _status(report: Report, bad: tuple[str, ...], writes_baseline: bool) -> int:
    if not writes_baseline and any(finding.level in bad for finding in report.findings):
        return _ALARM
    if report.errors:
        return _FAULT
    return 0 if report.is_complete else _USAGE


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options. A wrong one ends the process with exit status 2."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} [options] script [arguments]\n       {_PROGRAM} explain [name]",
        description="Watch the first updates of a training script, and report faults. The script needs no change.",
        epilog="Exit status: 1 if a check found an alarm, 2 if the script fails or makes no update, otherwise 0."
        " The table [tool.trainwreck] of pyproject.toml may set select, ignore, strict, steps and baseline.",
        allow_abbrev=False,
    )
    known = parser.add_mutually_exclusive_group()
    add = parser.add_argument
    add("--steps", type=_positive, metavar="N", help=f"the number of updates to watch (default: {DEFAULT_STEPS})")
    add("--select", action="append", metavar="CHECK,...", help="run only these checks")
    add("--ignore", action="append", metavar="NAME,...", help="leave out checks or outcomes, such as modes or stale")
    add("--strict", action=argparse.BooleanOptionalAction, help="advice, too, gives exit status 1")
    add("--format", choices=("text", "json", "sarif", "github"), default="text", help="default: %(default)s")
    add("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    add("--output", type=Path, metavar="FILE", help="write the format to a file, and print text")
    add("--html", type=Path, metavar="FILE", help="also write a page for a browser")
    known.add_argument("--baseline", type=Path, metavar="FILE", help="drop the findings that this file contains")
    known.add_argument("--no-baseline", action="store_true", help="do not use the baseline of pyproject.toml")
    known.add_argument("--write-baseline", type=Path, metavar="FILE", help="write the findings as a baseline")
    add("--version", action="version", version=f"trainwreck {__version__}")
    add("script", help="the training script or notebook; its own arguments follow")
    add("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS).required = False
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        name = unknown[0].partition("=")[0]
        parser.error(f"there is no option {name}{did_you_mean(name, parser._option_string_actions)}")
    return options


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1")
    return number


def _require_files(options: argparse.Namespace) -> None:
    """Raise `UsageError` if the script does not exist, or if a result cannot have the name that the user gave."""
    if Path(options.script).is_dir():
        raise UsageError(f"{options.script} is a folder: name a training script or a notebook.")
    if not Path(options.script).is_file():
        hint = f"\n`{_PROGRAM} explain` takes no options before it." if options.script == "explain" else ""
        raise UsageError(f"There is no file {options.script}: name a training script or a notebook.{hint}")
    for name in ("output", "html", "write_baseline"):
        path: Path | None = getattr(options, name)
        option = f"--{name.replace('_', '-')}"
        if path is None:
            continue
        if path.suffix == ".py":  # the name of the result was forgotten, and this is the script
            raise UsageError(f"{option} would overwrite the program {path}: name the file for the result.")
        if path.is_dir():
            raise UsageError(f"{option}: {path} is a folder: name a file.")
        if not path.parent.is_dir():
            raise UsageError(f"{option}: there is no folder {path.parent}: make it first.")


def _baseline_path(options: argparse.Namespace, settings: Settings) -> Path | None:
    """Return the baseline to use. A new baseline contains all findings, so it does not use an old one."""
    if options.no_baseline or options.write_baseline:
        return None
    path: Path | None = options.baseline or settings.baseline
    return path


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_bytes(f"{text.rstrip()}\n".encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"{option}: {path} cannot be written: {error.strerror}.") from None


def _to_finding(found: dict[str, Any]) -> Finding:
    return Finding(**{**found, "place": Place(**found["place"])})
