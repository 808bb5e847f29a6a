"""The names of checks and outcomes."""

from trainwreck.check import Check
from trainwreck.checks import ALL
from trainwreck.finding import Finding, Outcome
from trainwreck.usage import did_you_mean

CHECKS: dict[str, type[Check]] = {check.name: check for check in ALL}
OUTCOMES: dict[str, Outcome] = {
    f"{check.name}/{name}": outcome for check in ALL for name, outcome in check.outcomes.items()
}
"""All outcomes, by names like `modes/trains-in-eval-mode`."""


def outcome_of(finding: Finding) -> Outcome:
    """Return the outcome that a finding reports."""
    return OUTCOMES[finding.name]


def outcomes_named(name: str) -> list[str]:
    """Return the outcomes that a name stands for: all of a check, one like `gradients/stale`, or each `stale`.

    A name of a check and of an outcome stands for the check.
    """
    part = 0 if name in CHECKS else 1
    return [outcome for outcome in OUTCOMES if name in (outcome, outcome.split("/")[part])]


def explain_unknown_check(name: str) -> str:
    """Return a message about a name that is not a check."""
    owners = dict.fromkeys(outcome.split("/")[0] for outcome in outcomes_named(name))
    hint = f"; {name} is an outcome of {' and '.join(owners)}" if owners else did_you_mean(name, CHECKS)
    return f"there is no check {name}{hint}\nThe checks are {', '.join(CHECKS)}."


def explain_unknown_name(name: str) -> str:
    """Return a message about a name that is neither a check nor an outcome."""
    check = name.partition("/")[0]
    if "/" in name and check in CHECKS:
        own = list(CHECKS[check].outcomes)
        hint = did_you_mean(name, [f"{check}/{outcome}" for outcome in own])
        return f"there is no outcome {name}{hint}\nThe outcomes of {check} are {', '.join(own)}."
    known = [*CHECKS, *(outcome.split("/")[1] for outcome in OUTCOMES), *OUTCOMES]
    listed = f"The checks are {', '.join(CHECKS)}.\n`python -m trainwreck explain CHECK` lists the outcomes of a check."
    return f"there is no check or outcome {name}{did_you_mean(name, known)}\n{listed}"
