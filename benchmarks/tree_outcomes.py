"""Records what every check finds of the experiments with which decision trees are graded.

    python -m benchmarks.tree_outcomes [--write] [--fresh] [--jobs 1]

Some 60 experiments by 14 checks, a quarter of an hour of one core. Without --fresh, what is there of the same source
and the same instruments is kept; whoever is interrupted goes on from there.
"""

import click

from grader.score.solutions import SOLUTIONS
from grader.written.decision_tree.recorded import OUTCOMES, Recorded, Recording
from harness.files import write_whole

FILE = SOLUTIONS / "decision_tree" / OUTCOMES


def text_of(recording: Recording) -> str:
    """Return the file: a line for each experiment, so that a change of one is a change of one line."""
    lines = ",\n".join(f"  {one.model_dump_json()}" for one in recording.experiments)
    head = recording.model_dump_json(exclude={"experiments"})
    return f'{head[:-1]},"experiments":[\n{lines}\n]}}\n'


@click.command()
@click.option("--write", is_flag=True, help=f"Write {FILE.name} among the solutions.")
@click.option("--fresh", is_flag=True, help="Record everything anew.")
@click.option("--jobs", default=1, show_default=True, help="Experiments side by side.")
def main(write: bool, fresh: bool, jobs: int) -> None:
    """Record what every check finds of the experiments with which decision trees are graded."""
    from grader.written.decision_tree.recording import record

    known: dict[str, Recorded] = {}
    if FILE.is_file() and not fresh:
        there = Recording.model_validate_json(FILE.read_bytes())
        known = {one.key: one for one in there.experiments}
    for recording in record(known, jobs=jobs):
        click.echo(f"{len(recording.experiments)} experiments")
        if write:
            write_whole({FILE: text_of(recording).encode()})


if __name__ == "__main__":
    main()
