"""The checks of the method as data, and their outcomes for an experiment: what a decision tree is made of and walks.

A check is one instrument with a closed set of outcomes; `checks.toml` holds them in the order of the method. Nothing
here imports torch: the instruments run in a process of their own.
"""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.checks.job import InstrumentJob, examine
from harness.errors import UserError
from harness.recipe import suggestion
from harness.run.settings import RunSettings

CHECKS_FILE = Path(__file__).with_name("checks.toml")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Outcome(_Strict):
    """One thing that a check may find.

    `reading` is what that rules in or out; a `sound` outcome rules something out. `next` are ids of checks, `look` is
    the place to read on where no further check is needed.
    """

    id: str
    reading: str
    sound: bool = False
    next: Annotated[tuple[str, ...], Field(strict=False)] = ()
    look: str | None = None


class Check(_Strict):
    """One check: the question that it answers, the command that makes it, and what it costs a person, in minutes.

    `triage` says whether it belongs to the walk of `harness triage`.
    """

    id: str
    question: str
    command: str
    minutes: Annotated[float, Field(gt=0, strict=False)]
    triage: bool = False
    outcomes: Annotated[tuple[Outcome, ...], Field(min_length=2, strict=False)]

    def outcome(self, name: str) -> Outcome:
        """Return the outcome of this name. Raises `KeyError` for one that the check cannot have."""
        return {outcome.id: outcome for outcome in self.outcomes}[name]

    def command_for(self, exercise: str) -> str:
        """Return the command as a person types it for an exercise."""
        return self.command.replace("{exercise}", exercise)


@cache
def load_checks() -> tuple[Check, ...]:
    """Return all checks in the order of the method."""
    table = tomllib.loads(CHECKS_FILE.read_text(encoding="utf-8"))
    return tuple(
        Check.model_validate(
            {
                **{key: value for key, value in row.items() if key != "outcome"},
                "outcomes": [{"id": name, **outcome} for name, outcome in row["outcome"].items()],
            }
        )
        for row in table["check"]
    )


def find_check(check_id: str) -> Check:
    """Return one check. Raises `UserError` for an unknown id."""
    checks = {check.id: check for check in load_checks()}
    if check_id not in checks:
        raise UserError(f"There is no check {check_id!r}: {suggestion(check_id, list(checks))}")
    return checks[check_id]


def triage_checks() -> tuple[Check, ...]:
    """Return the checks that `harness triage` makes, in its order."""
    return tuple(check for check in load_checks() if check.triage)


def checked_ids(only: Sequence[str]) -> tuple[str, ...]:
    """Return the ids in the order of the method, without doubles. Raises `UserError` for an unknown one."""
    wanted = {find_check(check_id).id for check_id in only}
    return tuple(check.id for check in load_checks() if check.id in wanted)


def run_checks(
    source: str,
    settings: RunSettings,
    checks: Sequence[str] | None = None,
    *,
    source_path: str | None = None,
) -> dict[str, str]:
    """Return what each check, by default every one, finds of an experiment: {check id: outcome id}.

    They run in one process of its own with the numerics of a run, so the outcomes are the same on every machine of
    the portable class. Each starts from the seed of the settings anew: no check changes what another one finds.
    `source_path` is the file that errors name. Raises `UserError` for an unknown check and for a mistake in the
    experiment, `Stopped` after Ctrl-C, and `ChildFault` for a fault of ours.
    """
    ids = checked_ids([check.id for check in load_checks()] if checks is None else checks)
    evidence = examine(InstrumentJob(settings, source, ids, source_path), bar=False)
    return {name: found.outcome for name, found in evidence.items()}
