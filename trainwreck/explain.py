"""`python -m trainwreck explain`: the checks, and what each outcome means."""

import argparse
import inspect
import sys
from collections.abc import Iterator

from trainwreck.catalogue import CHECKS, OUTCOMES, explain_unknown_name, outcomes_named
from trainwreck.show import outcome_lines
from trainwreck.terminal import print_lines, width_of, wrap
from trainwreck.usage import UsageError

_WIDTH = 80  # if the output does not go to a terminal


def explain(arguments: list[str]) -> None:
    """Run the command: list all checks, or explain a check or an outcome.

    Raises `UsageError` for an unknown name.
    """
    parser = argparse.ArgumentParser(
        prog="python -m trainwreck explain", description="List the checks, or explain a check or an outcome."
    )
    parser.add_argument("name", nargs="?", help="a check like modes, or an outcome like modes/trains-in-eval-mode")
    name = parser.parse_args(arguments).name
    width = width_of(sys.stdout) or _WIDTH
    print_lines(_list(width) if name is None else _explain(name, width), sys.stdout)


def _list(width: int) -> Iterator[str]:
    """Yield the name of each check with its question."""
    indent = 2 + max(map(len, CHECKS))
    for name, check in CHECKS.items():
        yield from wrap(check.question, width, name.ljust(indent), " " * indent)
    yield ""
    yield from wrap("`python -m trainwreck explain CHECK` explains a check and its outcomes.", width)


def _explain(name: str, width: int) -> Iterator[str]:
    """Yield the property of each check that the name belongs to, and the outcomes that the name stands for."""
    outcomes = outcomes_named(name)
    if not outcomes:
        raise UsageError(f"explain: {explain_unknown_name(name)}")
    last = ""
    for outcome in outcomes:
        check = CHECKS[outcome.partition("/")[0]]
        if check.name != last:
            yield from wrap(f"{check.name}: {check.question}", width)
            yield ""
            for paragraph in inspect.cleandoc(check.__doc__ or "").split("\n\n"):
                yield from wrap(paragraph.replace("\n", " "), width)
                yield ""
            last = check.name
        yield from outcome_lines(outcome, OUTCOMES[outcome], width)
