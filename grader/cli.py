"""The `grader` command with its subcommands for instructors. Most subcommands print at the end what to do next."""

import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from harness import __version__
from harness.canonical_setup import usable_cores
from harness.console.command_line import (
    HELP_OPTIONS,
    confirm,
    kind_option,
    minutes_option,
    run_command,
    whole_number,
    work_option,
)  # fmt: skip
from harness.errors import UserError, name_place
from harness.recipes.suite import require_clone

# Each command imports its modules when it runs, so that `grader --help` is fast.

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)
_reports = click.option(
    "--out", type=_FOLDER, help="The folder of the reports.  [default: reports, or reports/ASSIGNMENT]"
)
_jobs = click.option(
    "--jobs", metavar="N", type=whole_number(1, 1024), default=usable_cores,
    help="The number of runs to replay in parallel on this machine. Default: one for each core.",
)  # fmt: skip

_course = click.option("--course", type=_FILE, help="The course file. Default, if --assignment is given: course.toml.")
_assignment = click.option("--assignment", metavar="ID", help="The id of an assignment in the course file.")
_course_file = click.argument("file", type=_FILE, default=Path("course.toml"))


def _course_of(course: Path | None, assignment: str | None) -> Path | None:
    """Return `course`; or `course.toml` if only an assignment is given; or None if neither is given."""
    return Path("course.toml") if course is None and assignment is not None else course


def _reports_of(out: Path | None, course: Path | None, assignment: str | None) -> Path:
    """Return the folder for the reports: `out`, or a separate folder for each assignment of a course, or `reports`."""
    if out is not None or course is None:
        return out or Path("reports")
    from grader.course.course import read_course

    return Path("reports", read_course(course).find(assignment).id)


@click.group(context_settings=HELP_OPTIONS)
@click.version_option(__version__)
def cli() -> None:
    """Repeat the runs of submissions in a sandbox, and score the submissions by a rubric."""


@cli.command()
@click.argument("submissions", type=click.Path(path_type=Path))
@_reports
@_jobs
@click.option(
    "--rubric", type=_FILE, help="The rubric file. Default: the assignment's rubric, or grader/score/rubric.toml."
)
@_course
@_assignment
@click.option(
    "--times",
    type=_FILE,
    help="The file with the times of submission: a CSV of names and times, or a platform's export (docs/grading.md).",
)
@click.option(
    "--trust-file-dates",
    is_flag=True,
    help="Use the date of each file as its time of submission. Copying a file may change its date.",
)
@click.option(
    "--trust-submissions", is_flag=True,
    help="Run students' code WITHOUT a sandbox, with all your access rights. Every report will mention this.",
)  # fmt: skip
# Hidden, because only the attack tests use it. "fresh" starts a new process for each run; "warm" is faster, and gives
# the same scores.
@click.option("--sandbox", "engine", type=click.Choice(("warm", "fresh")), default="warm", hidden=True)
@click.option(
    "--cluster", metavar="ADDRESS",
    help="Replay the runs on the workers of a Dask scheduler, such as tcp://HOST:8786 (docs/cluster.md).",
)  # fmt: skip
def score(submissions: Path, **options: Any) -> None:
    """Score everything in SUBMISSIONS, a folder or a zip, and write the reports.

    SUBMISSIONS may be an unchanged download from Canvas, Moodle or Gradescope (docs/grading.md).
    Exit status: 0 everything is judged, 1 you must decide something, 2 wrong use, 3 a bug in trainwreck.
    """
    from grader.grade import score_folder
    from grader.session import ScoreOptions

    options["course"] = _course_of(options["course"], options["assignment"])
    options["out"] = _reports_of(options["out"], options["course"], options["assignment"])
    asked = ScoreOptions(**options)
    if asked.cluster is not None and asked.trust_submissions:
        raise UserError("A cluster always uses the sandbox: remove --trust-submissions.")
    with name_place(asked.out):
        sys.exit(score_folder(submissions, asked))


@cli.command()
@click.argument("reports", type=_FOLDER)
@click.option("--who", help="Your name, stored with each decision. Default: your login.")
@click.option(
    "--anonymous", is_flag=True, help="Hide names, and sort the submissions in an order that reveals no name."
)
@click.option(
    "--requests",
    type=click.Path(path_type=Path),
    help="Import students' regrade requests from a mail, or from a folder of mails.",
)
def review(reports: Path, who: str | None, anonymous: bool, requests: Path | None) -> None:
    """Open a page in your browser on which you decide the points of open items in REPORTS.

    Only this machine can open the page. The page saves each decision at once, in a file next to the reports.
    """
    import getpass

    from grader.course.requests import take_in
    from grader.course.review_page import serve

    if requests is not None:
        with name_place(requests):
            new, known, without = take_in(reports, requests)
        click.echo(f"Regrade requests: {new} new, {known} imported before.")
        for name in without:
            click.echo(f"  {name} contains no request: read it yourself.", err=True)
    serve(reports, who or getpass.getuser(), anonymous=anonymous)


@cli.command()
@click.argument("reports", type=_FOLDER)
@click.option("--all", "every", is_flag=True, help="Show all changes of each scoring, not only the first ten.")
def log(reports: Path, every: bool) -> None:
    """Show the history of REPORTS: who scored and exported them, when, with which inputs, and what changed."""
    from datetime import UTC

    from grader.course.log import format_log, log_path, read_log
    from grader.score.scores_file import head_before

    with name_place(reports):
        entries, scores = read_log(reports), head_before(reports)
    if not entries:
        raise UserError(f"There is no {log_path(reports)}: give the folder that grader score wrote.")
    click.echo("\n".join(format_log(entries, scores.zone if scores else UTC, every=every)))


@cli.command("forget")
@click.argument("student", metavar="LOGIN")
@click.argument("reports", type=_FOLDER, nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def forget_(student: str, reports: tuple[Path, ...], yes: bool) -> None:
    """Delete everything about a student from one or several folders REPORTS.

    Also delete the student from decisions, regrade requests, exports and the log. List the files that you must delete
    yourself.
    """
    from grader.course.forget import forget, places_left

    if not yes:
        confirm(
            f"Delete everything about {student} in {', '.join(map(str, reports))}? You cannot undo this.",
            "Nothing was deleted.",
        )
    for folder in reports:
        with name_place(folder):
            click.echo("\n".join(forget(student, folder)))
    click.echo("\n".join(["Next:", *(f"  {line}" for line in places_left(student))]))


@cli.command()
@click.option(
    "--format",
    "platform",
    required=True,
    type=click.Choice(("canvas", "moodle", "gradescope-autograder", "csv", "json", "pages")),
)
@_reports
@click.option(
    "--gradebook",
    type=_FILE,
    help="The table to fill in, as exported: Canvas's gradebook or Moodle's grading worksheet.",
)
@click.option(
    "--course", type=_FILE,
    help="The course file. The email addresses in its roster help to find students in the table of --gradebook."
    " Default, if --assignment is given: course.toml.",
)  # fmt: skip
@_assignment
@click.option(
    "--column",
    metavar="HEADING",
    help="Canvas: the column to fill in. Default: the column with the name of the exercise, or the only column.",
)
@click.option(
    "--exercise",
    "exercises",
    metavar="EXERCISE",
    multiple=True,
    help="An exercise to export, or an exercise that Gradescope scores; repeatable.",
)
@click.option(
    "--pseudonyms",
    is_flag=True,
    help="For csv and json, with --course: write pseudonyms instead of names, and leave out comments and messages.",
)
@click.option("--overwrite", is_flag=True, help="Also replace grades that other people entered on the platform.")
@click.option(
    "--visibility",
    type=click.Choice(("visible", "after_due_date", "after_published", "hidden")),
    help="Gradescope: when students see the points of each item. Default: after_due_date.",
)
@click.option(
    "--trust-submissions", is_flag=True,
    help="Gradescope: run students' code WITHOUT a sandbox, if bubblewrap cannot work in Gradescope's container.",
)  # fmt: skip
def export(platform: Any, out: Path | None, course: Path | None, assignment: str | None, **options: Any) -> None:
    """Export the scores in the format of a platform.

    The files go to the folder export/ in the reports, and replace earlier exports. --format pages writes one page for
    each student. --format gradescope-autograder packs this grader, so that Gradescope can run it.
    """
    from grader.course.export import ExportOptions, run_export

    course = _course_of(course, assignment)
    out = _reports_of(out, course, assignment)
    run_export(platform, ExportOptions(out=out, course=course, assignment=assignment, **options))


@cli.command()
@click.argument("exercise", metavar="EXERCISE")
@work_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def practice(exercise: str, work: Path, yes: bool) -> None:
    """Score your own work on EXERCISE at home, without handing it in.

    The score reveals the cause of the fault. If your experiment is not fixed yet, the command asks before it scores.
    """
    from grader.course.practice import practise, reveals_too_early

    with name_place(work):
        if not yes and reveals_too_early(exercise, work):
            question = (
                f"{exercise} is not fixed yet, and its score reveals the cause. Score it anyway? Your submission will"
                " say that you have seen the cause."
            )
            confirm(question, "Nothing was scored.")
        sys.exit(practise(exercise, work))


@cli.command()
def doctor() -> None:
    """Check whether this machine can grade: test the sandbox, the results of known runs, and the data sets."""
    from grader.doctor import run_doctor

    sys.exit(run_doctor())


@cli.command()
@click.option(
    "--seeds", metavar="N", type=whole_number(1, 1000), default=2, show_default=True,
    help="Run each exercise with N seeds.",
)  # fmt: skip
@click.option("--only", metavar="EXERCISE", multiple=True, help="Check only this exercise; repeatable.")
@click.option(
    "--write", is_flag=True, help="Store the measurements, and generate pages of the documentation from them."
)
@_jobs
def selfcheck(**options: Any) -> None:
    """Test every exercise, and test whether the grader judges known edits as expected.

    Exit status: 0 everything is as expected, 1 a result is unexpected, 2 wrong use, 3 a bug in trainwreck.
    """
    from grader.selfcheck.command import SelfcheckOptions, run_selfcheck

    if options["write"]:
        require_clone("grader selfcheck --write")
    sys.exit(run_selfcheck(SelfcheckOptions(**options)))


@cli.group()
def interview() -> None:
    """Give a candidate a debugging interview, and score the answer."""


@interview.command("new")
@click.argument("name")
@kind_option
@click.option("--seed", metavar="N", type=whole_number(0), required=True, help="Decides which faults are drawn.")
@minutes_option
@click.option("--out", type=_FOLDER, default=Path(), help="The folder for both files.  [default: this folder]")
def new_interview(name: str, kind: str, seed: int, minutes: int, out: Path) -> None:
    """Write NAME.tar.gz for a candidate, and NAME.key.json with the faults, which you keep."""
    from grader.interview import new_interview as new

    archive, key = new(name, kind, seed, minutes, out)
    click.echo(f"wrote {archive} for the candidate, and {key} for you")
    click.echo(f"Next: the candidate opens it with harness interview open {archive.name}, and sends you the file that")
    click.echo(f"  make finish writes. Then: grader interview score ANSWER --key {key}")


@interview.command("score")
@click.argument("answer", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", type=_FILE, required=True, help="The key file that grader interview new wrote.")
@click.option("--out", type=_FOLDER, required=True, help="The folder for the page and the verdict.")
def score_interview(answer: Path, key: Path, out: Path) -> None:
    """Judge a candidate's ANSWER in the sandbox, and write a page about it."""
    from grader.interview import score_interview as score
    from harness.interview.report import show_verdict

    for line in show_verdict(score(answer, key, out, lambda sentence: click.echo(sentence, err=True))):
        click.echo(line)
    click.echo(f"Next: open {out / 'interview.html'}, and read the changes of the candidate yourself")


@cli.command("new-recipe")
@click.argument("recipe_id", metavar="ID")
@click.option("--experiment", required=True, metavar="NAME", help="The healthy experiment to break.")
@click.option(
    "--find",
    "finds",
    required=True,
    multiple=True,
    help="A text to replace, which occurs once in the experiment; repeatable.",
)
@click.option("--replace", "replaces", required=True, multiple=True, help="The new text in its place; repeatable.")
@click.option(
    "--dataset", metavar="NAME", help="The data set. Default: the one that other recipes of this experiment use."
)
@click.option("--seeds", metavar="N", type=whole_number(2, 1000), default=10, show_default=True)
@_jobs
def new_recipe(
    recipe_id: str, experiment: str, finds: tuple[str, ...], replaces: tuple[str, ...], dataset: str | None,
    seeds: int, jobs: int,
) -> None:  # fmt: skip
    """Make a new exercise (a recipe) from one edit of a healthy experiment, and measure its runs.

    In --find and --replace, write a line break as a backslash and an n.
    """
    from grader.selfcheck.new_recipe import edits_of, write_recipe

    require_clone("grader new-recipe")
    edits = edits_of(finds, replaces)
    sys.exit(write_recipe(recipe_id, experiment, edits, dataset, seeds=seeds, jobs=jobs))


@cli.command("new-written")
@click.argument("name", metavar="NAME")
@_jobs
def new_written(name: str, jobs: int) -> None:
    """Make a new written exercise NAME, whose answer is one file with functions. It begins as a working example."""
    from grader.selfcheck.new_written import make_exercise

    require_clone("grader new-written")
    sys.exit(make_exercise(name, jobs=jobs))


@cli.command("new-experiment")
@click.argument("name", metavar="NAME")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="A CSV, a folder with one CSV, or a folder with one folder of images for each class. Without --data, check the"
    " existing experiment NAME again.",
)
@click.option("--target", metavar="COLUMN", help="CSV: the column to predict.  [default: the last column]")
@click.option(
    "--group", metavar="COLUMN", help="CSV: a column. Rows with the same value in it are put into the same split."
)
@click.option("--seeds", metavar="N", type=whole_number(1, 1000), default=3, show_default=True)
@_jobs
def new_experiment(
    name: str, data: Path | None, target: str | None, group: str | None, seeds: int, jobs: int
) -> None:  # fmt: skip
    """Make a data set with a held-out split from --data, write an experiment on it, and check the experiment.

    Exit status: 0 the checks find no fault, 1 they find a fault, 2 wrong use, 3 a bug in trainwreck.
    """
    from grader.selfcheck.new_experiment import check_experiment, in_new_process, write_experiment

    require_clone("grader new-experiment")
    if data is None:
        sys.exit(check_experiment(name, seeds=seeds, jobs=jobs))
    for line in write_experiment(name, data, target=target, group=group):
        click.echo(line)
    sys.exit(in_new_process(name, seeds=seeds, jobs=jobs))


@cli.command()
@click.option("--out", type=_FOLDER, default=Path("demo"), show_default=True, help="The folder to make.")
@_jobs
def demo(out: Path, jobs: int) -> None:
    """Make an invented course of 40 students, score two assignments, export the scores, and list the pages to open."""
    from grader.course.demo import run_demo
    from grader.grade import score_folder

    with name_place(out):
        sys.exit(run_demo(out, score_folder, jobs=jobs))


@cli.command()
@click.option(
    "--out", type=_FILE, help="The file to write.  [default: kit.tar.gz, or the assignment's id with .tar.gz]"
)
@_course
@_assignment
@click.option(
    "--inside", type=_FILE, help="Do not build an archive. List the files of this archive, and search them for answers."
)
def kit(out: Path | None, course: Path | None, assignment: str | None, inside: Path | None) -> None:
    """Build the archive for students, with all exercises but no solutions, or with the cases of one assignment.

    Exit status with --inside: 0 the archive reveals no answer, 1 it reveals answers.
    """
    from grader.course.course import read_course
    from grader.course.kit import assignment_files, build_kit, describe_kit, inspect_kit
    from grader.course.lock import note_kit
    from harness.recipes.recipe import load_recipes

    file = _course_of(course, assignment)
    if file is not None:
        read = read_course(file)
        chosen = read.find(assignment)
        if inside is not None:
            lines, told = inspect_kit(inside, read, chosen)
            click.echo("\n".join(lines))
            click.echo("The archive reveals answers." if told else f"The archive reveals no answer of {chosen.id}.")
            sys.exit(1 if told else 0)
        out = out or Path(f"{chosen.id}.tar.gz")
        with name_place(out):
            built = build_kit(out, assignment_files(read, chosen))
        for line in note_kit(read, chosen):
            click.echo(line)
        click.echo(f"{out}: {describe_kit(built)}\nNext: give it to your students. To look inside first:")
        click.echo(f"  grader kit --course {file} --assignment {chosen.id} --inside {out}")
        return
    if inside is not None:
        raise UserError("A search for answers needs the assignment: add --assignment and, if necessary, --course.")
    out = out or Path("kit.tar.gz")
    with name_place(out):
        files = build_kit(out)
    for problem in load_recipes()[1].values():
        click.echo(f"Left out: {problem}", err=True)
    click.echo(f"{out}: {describe_kit(files)}")
    if Path("course.toml").is_file():
        click.echo(
            "This kit contains every exercise, and the names of exercises reveal causes. Do not hand it out in a graded"
            " course."
        )
        click.echo("Next: grader kit --assignment ID")
    else:
        click.echo(f"Next: hand out {out}.")


@cli.group()
def course() -> None:
    """Write and check a course file, which names the roster, the assignments and their cases."""


@course.command()
@_course_file
def new(file: Path) -> None:
    """Write a course file with comments and, if there is no roster, an example roster next to the course file."""
    from grader.course.new import write_course

    with name_place(file):
        roster = write_course(file)
    click.echo(
        f"Wrote {file}. The roster is {roster}.\n"
        f"Next: write your students into {roster}, and your dates and cases into {file}. Then:"
    )
    click.echo(f"  grader course check {file}")


@course.command("check")
@_course_file
def check_(file: Path) -> None:
    """Read a course file and all files that it names. Print a summary or, if there are errors, all errors."""
    from grader.course.course import check_course

    click.echo("\n".join(check_course(file)))
    click.echo(f"Next: grader kit --course {file} --assignment ID")


@course.command()
@_course_file
@click.option("--assignment", metavar="ID", required=True, help="The assignment that gets the cases. It may be new.")
@click.option("--cases", "count", metavar="N", type=whole_number(1, 26), required=True, help="The number of cases.")
@click.option("--level", metavar="N", type=whole_number(1, 5), required=True, help="The difficulty, from 1 to 5.")
@click.option(
    "--pool", metavar="K", type=whole_number(1, 8), default=1, show_default=True,
    help="Draw a pool of K similar cases in place of each case. Each student gets one case of each pool.",
)  # fmt: skip
def draw(file: Path, assignment: str, count: int, level: int, pool: int) -> None:
    """Draw cases, and print them for your course file. The same command always prints the same cases."""
    from grader.course.course import read_course
    from grader.course.draw import case_tables, draw_cases

    click.echo(case_tables(draw_cases(read_course(file), assignment, count, level, pool=pool)), nl=False)


@cli.command("clear-cache")
def clear_cache() -> None:
    """Delete the cached results of replays. The next grading computes these results again."""
    from grader.replay.replays import default_folder, trim

    count, size = trim(default_folder(), days=-1.0)
    click.echo(f"Deleted {count} entries ({size / 1e6:.1f} MB).")


def main() -> NoReturn:
    """Run the `grader` command."""
    # If the parent process ignores SIGCHLD, bubblewrap inherits this setting and waits for its child forever.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run_command(cli, "grader")
