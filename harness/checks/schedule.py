"""Follow the learning rate from the first step of the run to the last, and count the steps in which it is almost zero.

`build_scheduler` receives the number of steps, and the schedule advances once per batch. If a schedule counts epochs
instead, it ends within a few steps and leaves almost no learning rate for the rest of the run. A step counts as spent
if its learning rate is below a hundredth of the largest one (the peak).
"""

from itertools import groupby

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject
from harness.checks.learning_rate import rates_of

# figure                        | healthy | broken  | bound     | source
# share of steps that are spent | 7 %     | >= 95 % | MOST 50 % | warm-up and cosine to zero; a schedule in epochs
#                               | <= 33 % |         |           | a rate that is twice divided by ten
SPENT, MOST = 0.01, 0.5
ROWS = 12  # at most about this many rows in the table


def measure(subject: Subject) -> Finding:
    """Read the learning rate of each step of the run, and count the rates below a hundredth of the peak."""
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
