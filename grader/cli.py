"""The `grader` command: the instructor's verbs. A verb that makes something names the next step."""

import signal
import sys
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

from harness.command_line import HELP_OPTIONS, confirm, run_command, whole_number, work_option
from harness.errors import UserError, naming
from harness.run.provenance import usable_cores

# Commands import what they need themselves, so that `grader --help` is instant.

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)
_reports = click.option(
    "--out", type=_FOLDER, default=Path("reports"), show_default=True, help="The folder of the reports."
)
_jobs = click.option(
    "--jobs", metavar="N", type=whole_number(1, 1024), default=usable_cores,
    help="Replays side by side on this machine; by default one for each core.",
)  # fmt: skip


@click.group(context_settings=HELP_OPTIONS)
@click.version_option(package_name="trainwreck")
def cli() -> None:
    """Replay submissions in a sandbox, and score them by the rubric."""


@cli.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@_reports
@_jobs
@click.option("--rubric", type=_FILE, help="Weights to use in place of grader/score/rubric.toml.")
@click.option("--times", type=_FILE, help="A CSV of logins or file names, each with the ISO time of its submission.")
@click.option(
    "--trust-submissions", is_flag=True,
    help="Run students' code WITHOUT a sandbox, with all your rights. Every report will say so.",
)  # fmt: skip
# Hidden: "fresh" starts a process for each run, which is slower and gives the same scores. The red team tries both.
@click.option("--sandbox", "engine", type=click.Choice(("warm", "fresh")), default="warm", hidden=True)
@click.option(
    "--cluster", metavar="ADDRESS",
    help="Replay on the workers of the Dask scheduler at tcp://HOST:8786 (docs/cluster.md).",
)  # fmt: skip
def score(submissions: Path, **options: Any) -> None:
    """Score everything in SUBMISSIONS, a folder or a zip, and write the reports.

    Canvas's, Moodle's and Gradescope's downloads are read as they are (docs/grading.md).
    Exit status: 0 everything was judged, 1 something waits for you, 2 wrong use, 3 our fault.
    """
    from grader.grade import score_folder
    from grader.session import ScoreOptions

    asked = ScoreOptions(**options)
    if asked.cluster is not None and asked.trust_submissions:
        raise UserError("A cluster runs students' code in a sandbox only: leave --trust-submissions out.")
    with naming(asked.out):
        sys.exit(score_folder(submissions, asked))


@cli.command()
@click.argument("reports", type=_FOLDER)
@click.option("--who", help="Your name, to be noted with each decision; by default your login.")
def review(reports: Path, who: str | None) -> None:
    """Decide the checks that wait for you in REPORTS, one by one."""
    import getpass

    from rich.console import Console

    from grader.course.review import review as walk

    walk(reports, who or getpass.getuser(), Console())


@cli.command()
@click.option("--format", "platform", type=click.Choice(("canvas", "moodle")), required=True)
@_reports
def export(platform: Literal["canvas", "moodle"], out: Path) -> None:
    """Write the scores for Canvas or Moodle.

    They go below export/ in the reports.
    """
    from grader.report.gradebook import export as exported
    from grader.report.gradebook import not_exported
    from grader.report.text import clipped
    from grader.score.verdict import read_scores
    from harness.files import write_whole

    scores = read_scores(out)
    path = out / "export" / f"{platform}.csv"
    with naming(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole({path: exported(scores, platform)})
    click.echo(f"{path}\nNext: import it into {platform.capitalize()}.")
    if waiting := sum(row.status == "not judged" for row in scores.submissions):
        click.echo(f"{waiting} not judged, and without a grade in it: grader review {out} shows why.")
    if outside := not_exported(scores):
        click.echo(f"{len(outside)} not in it: grade them there by hand, or decide (docs/grading.md).", err=True)
        for name, why in outside.items():
            click.echo(f"  {clipped(name, 80)}: {clipped(why, 200)}", err=True)


@cli.command()
@click.argument("exercise", metavar="EXERCISE")
@work_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def practice(exercise: str, work: Path, yes: bool) -> None:
    """Score your own workspace of EXERCISE at home.

    The score tells the cause. If the experiment is not fixed yet, it asks first.
    """
    from grader.course.practice import practise, tells_too_early

    with naming(work):
        if not yes and tells_too_early(exercise, work):
            question = (
                f"{exercise} is not fixed yet, and its score tells the cause. Score it? A submission will say so."
            )
            confirm(question, "Nothing was scored.")
        sys.exit(practise(exercise, work))


@cli.command()
def doctor() -> None:
    """Check whether this machine can grade.

    It looks at the sandbox, the numerics and the data.
    """
    from grader.doctor import run_doctor

    sys.exit(run_doctor())


@cli.command()
@click.option(
    "--seeds", metavar="N", type=whole_number(1, 1000), default=2, show_default=True,
    help="Run every recipe from so many seeds.",
)  # fmt: skip
@click.option("--only", metavar="EXERCISE", multiple=True, help="Check this exercise alone; repeatable.")
@click.option("--write", is_flag=True, help="Write what was measured, and the pages that follow from it.")
@_jobs
def selfcheck(**options: Any) -> None:
    """Prove every recipe, and the judge of fixes on known edits.

    Exit status: 0 everything agrees, 1 something does not, 2 wrong use, 3 our fault.
    """
    from grader.selfcheck.command import SelfcheckOptions, run_selfcheck

    sys.exit(run_selfcheck(SelfcheckOptions(**options)))


@cli.command("new-recipe")
@click.argument("recipe_id", metavar="ID")
@click.option("--experiment", required=True, metavar="NAME", help="The healthy experiment to break.")
@click.option("--find", "finds", required=True, multiple=True, help="Text that occurs once; repeatable.")
@click.option("--replace", "replaces", required=True, multiple=True, help="What replaces it; repeatable.")
@click.option("--dataset", metavar="NAME", help="Default: the data set of the experiment's other recipes.")
@click.option("--seeds", metavar="N", type=whole_number(2, 1000), default=10, show_default=True)
@_jobs
def new_recipe(
    recipe_id: str, experiment: str, finds: tuple[str, ...], replaces: tuple[str, ...], dataset: str | None,
    seeds: int, jobs: int,
) -> None:  # fmt: skip
    """Write and measure a new recipe from one edit.

    A backslash and n in --find and --replace stand for a line break.
    """
    from grader.selfcheck.new_recipe import edits_of, write_recipe

    edits = edits_of(finds, replaces)
    sys.exit(write_recipe(recipe_id, experiment, edits, dataset, seeds=seeds, jobs=jobs))


@cli.command()
@click.option("--to", type=_FOLDER, default=Path("demo"), show_default=True, help="The folder to make.")
@_jobs
def demo(to: Path, jobs: int) -> None:
    """Make a small class, score it, and name the page to open."""
    from grader.course.demo import run_demo

    with naming(to):
        sys.exit(run_demo(to, jobs=jobs))


@cli.command()
@click.option("--to", type=_FILE, default=Path("kit.tar.gz"), show_default=True, help="The file to write.")
def kit(to: Path) -> None:
    """Build what students get: the suite without its answers."""
    from grader.course.kit import build_kit, describe_kit
    from harness.recipe import load_recipes

    with naming(to):
        files = build_kit(to)
    for problem in load_recipes()[1].values():
        click.echo(f"Left out: {problem}", err=True)
    click.echo(f"{to}: {describe_kit(files)}\nNext: hand out {to}.")


@cli.command("clear-cache")
def clear_cache() -> None:
    """Delete the cached replays; the next grading makes them again."""
    from grader.replay.replays import default_folder, trim

    count, size = trim(default_folder(), days=-1.0)
    click.echo(f"Deleted {count} entries ({size / 1e6:.1f} MB).")


def main() -> NoReturn:
    """Run `grader`."""
    # If our parent ignores SIGCHLD, bubblewrap inherits that, and waits for its child for ever.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run_command(cli, "grader")
