"""`grader doctor`: check whether this machine can grade, and say what to install."""

from rich.console import Console

from grader.sandbox import sandbox_problem
from harness.data.loading import default_cache, load_dataset
from harness.doctor.report import examine_machine
from harness.errors import UserError
from harness.run.provenance import usable_cores


def run_doctor() -> int:
    """Print the findings; return 0 if this machine can grade, else 1."""
    console = Console()
    good = True
    for what, problem in (("sandbox", sandbox_problem()), ("numerics", _numerics_problem())):
        good = good and problem is None
        _line(console, what, problem or "works", "green" if problem is None else "bold red")
    for name in ("mnist", "cifar10"):
        _line(console, name, _data_problem(name) or "there", "")
    _line(console, "cores", str(usable_cores()), "")
    console.print("Next:", style="bold")
    console.print(
        "  grader score submissions/" if good else "  fix what is wrong above, then run grader doctor again"
    )
    return 0 if good else 1


def _line(console: Console, what: str, text: str, style: str) -> None:
    console.print(f"{what:>9}: {text}", markup=False, highlight=False, soft_wrap=True, style=style)


def _numerics_problem() -> str | None:
    found = examine_machine()
    if found["portable"]:
        return None
    wrong = [name for name, verdict in found["operations"].items() if verdict == "wrong"]
    detail = found["problem"] or f"{len(wrong)} operations round differently here: {', '.join(wrong[:5])}."
    return f"{detail} Equal hashes cannot be demanded; runs are compared by their figures."


def _data_problem(name: str) -> str | None:
    try:
        load_dataset(name, cache=default_cache())
    except UserError:
        return f"not here; make data DATASET={name} fetches it, for submissions that use it"
    return None
