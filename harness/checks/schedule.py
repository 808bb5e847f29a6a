"""Follows the learning rate from the first step of the run to the last: for how many steps is there a rate to speak of?

`build_scheduler` is told the number of steps and is stepped once a batch. A schedule that counts in epochs ends within
a few steps and leaves the rest of the run with next to none. A rate counts as spent below a hundredth of its peak.

Sources of the bound (half of the steps): warm-up and cosine to zero spend 7 % of a run, a rate that is divided by ten
twice spends at most its last third, and a schedule in epochs 95 % and more.
"""

from itertools import groupby

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject
from harness.checks.learning_rate import rates_of

SPENT, MOST = 0.01, 0.5
ROWS = 12


def measure(subject: Subject) -> Finding:
    """Read the rates of the run and count those that are next to nothing."""
    rates = rates_of(subject.trial())
    peak = max(rates)
    spent = sum(not rate >= SPENT * peak for rate in rates) / len(rates)
    outcome = "constant" if len(list(groupby(rates))) == 1 else "lasts"
    steps = range(0, len(rates), max(len(rates) // ROWS, 1))
    return Finding(
        "spent" if spent > MOST or not peak else outcome,
        f"{short(100 * spent, 3)} % of {len(rates)} steps have less than a hundredth of the peak {short(peak)}",
        {"steps": len(rates), "peak": peak, "rate of the first step": rates[0], "share of steps without a rate": spent},
        tables=(Table("Along the run", ("step", "lr"), tuple((str(step), rates[step]) for step in steps)),),
    )
