"""Define the `harness` command. Each subcommand ends by printing the next step."""

import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from harness import __version__
from harness.console.command_line import (
    HELP_OPTIONS,
    confirm,
    guardrail_options,
    read_policy,
    resume_option,
    run_command,
    run_options,
    whole_number,
    work_option,
)
from harness.console.terminal import fold, terminal_width
from harness.errors import Stopped, UserError, name_place
from harness.interview.commands import interview
from harness.run.settings import DEFAULT_POLICY, GuardrailPolicy
from harness.student.check_commands import add_check_commands

# Each command imports its other modules inside its function, so that `harness --help` is fast.

_recipe = click.argument("recipe", metavar="RECIPE")


class _Commands(click.Group):
    """A command group.

    Its help lists the commands for exercises in the order in which students use them, then the checks.
    """

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command. Its name may have underscores, because names of checks have them in reports."""
        return super().get_command(ctx, name.replace("_", "-"))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        for heading, group in (("Commands", _VERBS), ("Checks", [n for n in names if n not in _VERBS])):
            with formatter.section(heading):
                formatter.write_dl([(n, self.commands[n].get_short_help_str(80)) for n in group if n in self.commands])


_VERBS = (
    "next", "progress", "serve", "exercises", "exercise", "interview", "predict", "triage", "checks", "debug", "watch",
    "verify", "history", "hint", "causes", "show", "reproduce", "export-tensorboard", "check", "submit", "reveal",
    "clean-work", "status", "fetch", "doctor",
)  # fmt: skip


@click.group(cls=_Commands, context_settings=HELP_OPTIONS)
@click.version_option(__version__)
def cli() -> None:
    """Make a training run that is broken on purpose, find out why, fix it, and hand it in."""


@cli.command()
@_recipe
@run_options
@guardrail_options
@click.option(
    "--level",
    metavar="N",
    type=whole_number(1, 5),
    help="The difficulty of a hidden exercise (RECIPE mystery), from 1 to 5.",
)
@click.option("--student", metavar="NAME", help="Your login on the course platform. Later commands remember it.")
@work_option
@resume_option
def exercise(
    recipe: str, work: Path, resume: bool, level: int | None, student: str | None, **options: Any
) -> None:  # fmt: skip
    """Make a workspace for RECIPE and run its broken experiment.

    If RECIPE is mystery, choose a hidden exercise of the difficulty --level, which may have no fault at all. By default
    it is an exercise that you have not begun; --seed N chooses exercise number N of this difficulty.
    """
    from harness.recipes.cases import MYSTERY
    from harness.recipes.mysteries import draw_mystery
    from harness.student.summary import show_file_workspace
    from harness.workspace.progress import begun_exercises
    from harness.written.exercise import FileExercise, load_exercise
    from harness.written.workspace import start_file_exercise

    policy = read_policy(options)
    if recipe == MYSTERY:
        recipe = draw_mystery(begun_exercises(work), level, options.pop("seed"))
        options["seed"] = None
    elif level is not None:
        raise UserError(f"{recipe} has a fixed level: use --level only with BREAK={MYSTERY}.")
    found = load_exercise(recipe)
    if isinstance(found, FileExercise):
        _refuse_run_options(recipe, {**options, "resume": resume or None})
        answer, made = start_file_exercise(found, work)
        show_file_workspace(answer, made=made, restored=answer.restore())
        return
    _start(recipe, work, options, student=student, resume=resume, policy=policy)


def _start(
    recipe: str,
    work: Path,
    options: Mapping[str, Any],
    *,
    student: str | None,
    resume: bool = False,
    policy: GuardrailPolicy = DEFAULT_POLICY,
) -> None:
    """Make the workspace and the broken run of an exercise, and print the next steps."""
    from harness.run.options import RunOptions
    from harness.student.exercise import start_exercise
    from harness.student.summary import show_broken_run

    workspace, made = start_exercise(recipe, work, RunOptions(**options), student=student, resume=resume, policy=policy)
    if workspace.has_run("broken"):
        show_broken_run(workspace, made=made, restored=workspace.restore())
    else:
        from harness.student.prediction import show_what_to_predict

        show_what_to_predict(workspace)


@cli.command("next")
@click.option(
    "--level",
    metavar="N",
    type=whole_number(1, 5),
    help="The level of the case, from 1 to 5. By default, the level of your last case, until that level is complete.",
)
@click.option("--skip", is_flag=True, help="Put the open case aside.")
@click.option("--student", metavar="NAME", help="Your login on the course platform. Later commands remember it.")
@work_option
def next_case(work: Path, level: int | None, skip: bool, student: str | None) -> None:
    """Start the next case of your level, whose name does not tell the fault.

    Perhaps nothing is broken in it. Two cases never contain the same. In a course kit, start the next exercise of the
    kit.
    """
    from harness.student.overview import show_open_case
    from harness.student.queue import PracticeQueue

    queue = PracticeQueue(work)
    if skip:
        queue.draw(level)  # if there is no other case, put nothing aside
        queue.skip()
        queue = PracticeQueue(work)
    case = queue.open_case()
    if case is not None and queue.has_run(case):
        show_open_case(work, case)
        return
    _start(case.name if case else queue.draw(level), work, {}, student=student)


@cli.command()
@_recipe
@click.option(
    "--loss", metavar="ANSWER", help="What the training loss will do: falls, falls-little, stays, rises or no-number."
)
@click.option(
    "--half-rate", metavar="ANSWER", help="How the loss would be with half the learning rate: lower, same or higher."
)
@click.option("--check", metavar="NAME", help="The name of the check that will find the fault, or none.")
@click.option("--why", metavar="TEXT", help="Your reason, in one sentence.")
@click.option("--student", metavar="NAME", help="Your login on the course platform. Later commands remember it.")
@work_option
def predict(recipe: str, work: Path, student: str | None, **answers: str | None) -> None:
    """Predict what the broken run will do, before you start it.

    You can predict only once. The command asks for every answer that you do not give as an option.
    """
    from harness.run.options import RunOptions
    from harness.student.exercise import make_workspace
    from harness.student.prediction import ask_for, seal, show_prediction

    workspace, found = make_workspace(recipe, work, RunOptions(), student=student)
    seal(workspace, ask_for(workspace, found, answers))
    show_prediction(workspace)


def _refuse_run_options(exercise: str, options: Mapping[str, object]) -> None:
    """Raise `UserError` if an option for training runs is given for an exercise that has no training run."""
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        option = {"batch_size": "batch"}.get(given, given)
        raise UserError(f"{exercise} has no training run: remove --{option} ({option.upper()}=).")


@cli.command()
@_recipe
@run_options
@guardrail_options
@work_option
@resume_option
@click.option(
    "--which", is_flag=True,
    help="Name the checks that differ in your last attempt at a hidden exercise. Your submission says that you asked.",
)  # fmt: skip
@click.option(
    "--healthy", is_flag=True, help="Claim that nothing is broken in a hidden exercise, instead of running it."
)  # fmt: skip
def verify(recipe: str, work: Path, resume: bool, which: bool, healthy: bool, **options: Any) -> None:
    """Run your edited experiment and compare it with the broken run."""
    from harness.recipes.catalogue import load_recipe
    from harness.recipes.mysteries import is_hidden
    from harness.run.options import RunOptions
    from harness.student.exercise import claim_healthy, name_differing_checks, verify_exercise
    from harness.student.summary import show_claim, show_differing_checks, show_verdict_of
    from harness.student.verdict_children import VerdictChildren
    from harness.workspace.workspace import open_workspace

    if healthy:
        load_recipe(recipe)
        workspace = open_workspace(work, recipe)
        show_claim(workspace, right=claim_healthy(workspace))
        return
    if which:
        if not is_hidden(recipe):
            raise UserError(
                f"{recipe} is not a hidden exercise, so verify already shows each criterion: remove --which (WHICH=1)."
            )
        workspace = open_workspace(work, recipe)
        show_differing_checks(workspace, name_differing_checks(workspace))
        return
    policy = read_policy(options)
    with VerdictChildren() as children:
        workspace = verify_exercise(
            recipe, work, RunOptions(**options), resume=resume, policy=policy, children=children
        )
        show_verdict_of(workspace, children)


@cli.command()
@_recipe
@work_option
def watch(recipe: str, work: Path) -> None:
    """Run your experiment each time you save it, and compare it with the broken run."""
    from harness.run.options import RunOptions
    from harness.student.exercise import verify_exercise
    from harness.student.summary import show_verdict_of
    from harness.student.verdict_children import VerdictChildren
    from harness.workspace.workspace import open_workspace

    workspace = open_workspace(work, recipe)
    ran = None
    try:
        while True:
            with VerdictChildren() as children:
                children.start(workspace.settings.numerics)
                ran = _wait_for_save(workspace.experiment, ran)
                click.clear()
                try:
                    verify_exercise(recipe, work, RunOptions(), children=children)
                    show_verdict_of(workspace, children, again="and save it")
                except UserError as error:
                    click.echo(f"There is no new run. {error}")
                click.echo("Save the file to run it again. Press Ctrl-C to stop.")
    except (Stopped, KeyboardInterrupt):
        click.echo(f"Stopped watching. Next: {workspace.command('verify')}")


def _wait_for_save(path: Path, before: float | None) -> float:
    """Return the modification time of a file as soon as it exists and has another time than `before`.

    Reading the time again and again works on every file system, and with editors that replace the file.
    """
    while True:
        saved = path.stat().st_mtime if path.exists() else None
        if saved is not None and saved != before:
            return saved
        time.sleep(0.1)


@cli.command()
@_recipe
@click.option("--stop/--no-stop", default=True, show_default=True, help="Stop at the start of each training step.")
@work_option
def debug(recipe: str, work: Path, stop: bool) -> None:
    """Run your experiment in one process, and stop in train_step.

    In a terminal, pdb starts. In an editor, its own debugger stops, also at the breakpoints that you set in
    experiment.py. The run is not an attempt, and leaves no files.
    """
    from harness.recipes.catalogue import load_recipe
    from harness.student.debug_run import run_for_debugger
    from harness.workspace.workspace import open_workspace

    load_recipe(recipe)
    workspace = open_workspace(work, recipe)
    run_for_debugger(workspace, stop=stop)
    click.echo(f"The run ended. It left no files. Next: {workspace.command('verify')}")


@cli.command()
@_recipe
@work_option
@click.option("--diff", "number", metavar="N", type=whole_number(1), help="Show the edit of attempt N as a diff.")
def history(recipe: str, work: Path, number: int | None) -> None:
    """List your attempts, or show the edit of one attempt."""
    from harness.recipes.catalogue import load_recipe
    from harness.student.summary import show_edit, show_history
    from harness.workspace.workspace import open_workspace

    load_recipe(recipe)
    workspace = open_workspace(work, recipe)
    workspace.require_run("broken")
    if number is None:
        show_history(workspace)
    else:
        show_edit(workspace, number)


@cli.command()
@work_option
@click.option(
    "--port", metavar="N", type=whole_number(1, 65535), help="The port of the page. By default, a free port."
)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Only print the address; do not open a browser.")
def serve(work: Path, port: int | None, no_browser: bool) -> None:
    """Practise in a browser, on a page that only this machine can open."""
    from harness.practice.server import serve as serve_page

    serve_page(work, port=port or 0, browser=not no_browser)


@cli.command()
@_recipe
@work_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def reveal(recipe: str, work: Path, yes: bool) -> None:
    """Show the solution of an exercise: the cause, the fix and an explanation."""
    from harness.recipes.catalogue import load_recipe
    from harness.student.debrief import first_records, show_explanation
    from harness.student.solution import note_reveal, question_before

    found, folder = load_recipe(recipe), work / recipe
    question = question_before(found, folder)
    if question and not yes:
        confirm(question, "The solution was not shown.")
    note_reveal(found, folder)
    show_explanation(found, records=first_records(folder))


@cli.command()
@_recipe
@work_option
@click.option(
    "--level",
    metavar="N",
    type=whole_number(1, 3),
    help="The hint to show: 1, 2 or 3. By default, the hints that you have seen.",
)
def hint(recipe: str, work: Path, level: int | None) -> None:
    """Show a hint, or all hints that you have seen. Your submission says how many hints you saw."""
    from harness.student.hints import show_hint

    show_hint(recipe, work, level)


@cli.command()
@work_option
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON, for editors.")
def exercises(work: Path, as_json: bool) -> None:
    """List all exercises and your progress in each."""
    from harness.student.overview import exercises_as_json, show_exercises

    if as_json:
        click.echo(exercises_as_json(work))
    else:
        show_exercises(work)


@cli.command()
@work_option
def progress(work: Path) -> None:
    """Show which cases you solved, in what time, and how far each level is. Write the certificates."""
    from harness.student.overview import show_progress

    show_progress(work)


@cli.command()
@work_option
@click.option("--json", "as_json", is_flag=True, help="Print the state as JSON, for editors.")
def status(work: Path, as_json: bool) -> None:
    """Show the open case, or how to get the next one."""
    from harness.student.overview import show_status, status_as_json

    if as_json:
        click.echo(status_as_json(work))
    else:
        show_status(work)


@cli.command()
def causes() -> None:
    """List the causes that a report may name, and the area of each."""
    from harness.submission.log_values import load_causes

    known = load_causes()
    width, area = max(map(len, known)), max(len(cause.area) for cause in known.values())
    for name, cause in known.items():
        line = f"{name.ljust(width)}  {cause.area.ljust(area)}  {cause.says}"
        click.echo(fold(line, terminal_width(), hang=width + area + 4))
    click.echo(
        "Next: in report.md, name one of these causes under diagnosis: and rule out two other causes under ruled_out:"
    )


@cli.command()
@_recipe
@work_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The tarball to write. Default: reproduce_<recipe>.tgz.",
)
def reproduce(recipe: str, work: Path, out: Path | None) -> None:
    """Pack the smallest run that still shows the symptom.

    Give the tarball to a colleague, or add it to an escalation. It runs by itself in an empty folder:
    python reproduce.py.
    """
    from harness.recipes.catalogue import load_recipe
    from harness.student.reproducer import make_reproducer
    from harness.workspace.workspace import open_workspace

    load_recipe(recipe)
    path = out or Path(f"reproduce_{recipe}.tgz")
    found = make_reproducer(open_workspace(work, recipe), path)
    click.echo(
        f"{path} shows the symptom in {found['steps']} of {found['whole_steps']} steps,"
        f" on {found['examples']} of {found['whole_examples']} examples:"
    )
    for says in found["symptoms"]:
        click.echo(f"  {says}")
    click.echo("Next: unpack it in an empty folder, and run python reproduce.py there; its README.md says what to add.")


@cli.command()
@_recipe
@work_option
@click.option("--step", metavar="N", type=whole_number(0, 10**9), help="The training step, counted from 0.")
@click.option("--epoch", metavar="N", type=whole_number(0, 10**9), help="The epoch, counted from 0.")
@click.option(
    "--signal", "signals", multiple=True, help="A value to print, such as grad_mean.1.weight. May be repeated."
)
@click.option(
    "--run",
    type=click.Choice(["broken", "fixed"]),
    default="broken",
    show_default=True,
    help="The run whose log is read.",
)
def show(recipe: str, work: Path, step: int | None, epoch: int | None, signals: tuple[str, ...], run: str) -> None:
    """Print values of a run's log as lines for report.md, where they are evidence."""
    from harness.recipes.catalogue import load_recipe
    from harness.run.files import METRICS_LOG
    from harness.run.metrics_log import read_metrics_log
    from harness.submission.log_values import LogValues
    from harness.workspace.workspace import open_workspace

    if (step is None) == (epoch is None):
        raise UserError("Choose which values to print: give either --step N or --epoch N.")
    load_recipe(recipe)
    workspace = open_workspace(work, recipe)
    workspace.require_run(run)
    path = workspace.run_folder(run) / METRICS_LOG
    log = LogValues(read_metrics_log(path))
    try:
        for line in log.evidence(run, step, epoch, signals):
            click.echo(line)
    except UserError as error:
        raise UserError(f"In {path}, {error}") from None
    click.echo(f"Next: in {workspace.report}, paste the lines that you need under evidence:")


@cli.command("export-tensorboard")
@_recipe
@work_option
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="The output folder.  [default: work/RECIPE/tensorboard]",
)  # fmt: skip
def export_tensorboard(recipe: str, work: Path, out: Path | None) -> None:
    """Export the finished runs of an exercise as event files for TensorBoard."""
    from harness.recipes.catalogue import load_recipe
    from harness.student.tensorboard_export import FOLDER, export_tensorboard
    from harness.workspace.workspace import open_workspace

    load_recipe(recipe)
    workspace = open_workspace(work, recipe)
    out = out or workspace.folder / FOLDER
    runs = export_tensorboard(workspace, out)
    click.echo(f"{out} contains the {' and '.join(runs)} run{'s' * (len(runs) > 1)}.")
    click.echo(f"Next: tensorboard --logdir {shlex.quote(str(out))} (restart tensorboard after each export)")


@cli.command()
@_recipe
@work_option
def check(recipe: str, work: Path) -> None:
    """Check your work before you hand it in."""
    from harness.student.exercise import check_exercise
    from harness.student.summary import show_checks
    from harness.workspace.workspace import Workspace
    from harness.written.exercise import FileExercise, load_exercise
    from harness.written.workspace import FileWorkspace, check_file, open_file_workspace

    found = load_exercise(recipe)
    workspace: Workspace | FileWorkspace
    if isinstance(found, FileExercise):
        workspace = open_file_workspace(found, work)
        items = check_file(workspace)
    else:
        workspace, items = check_exercise(recipe, work)
    if not show_checks(items, workspace):
        sys.exit(2)


@cli.command()
@_recipe
@work_option
@click.option(
    "--student", metavar="NAME",
    help="Your login on the course platform. Default: the login that you gave to harness exercise.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("submissions"), show_default=True,
    help="The folder for the tarball.",
)  # fmt: skip
def submit(recipe: str, work: Path, student: str | None, out: Path) -> None:
    """Pack your work into one tarball to hand in."""
    from harness.student.exercise import check_seed
    from harness.student.hand_in import submit as pack
    from harness.student.summary import show_submission
    from harness.workspace.progress import noted_student
    from harness.workspace.workspace import open_workspace
    from harness.written.exercise import FileExercise, load_exercise
    from harness.written.workspace import open_file_workspace

    found = load_exercise(recipe)
    student = student or noted_student(work)
    if student is None:
        raise UserError("Your login is missing: add --student NAME (make submit: STUDENT=NAME).")
    with name_place(out):
        if isinstance(found, FileExercise):
            show_submission(pack(open_file_workspace(found, work), student, out))
        else:
            workspace = open_workspace(work, recipe)
            check_seed(workspace, student)
            show_submission(pack(workspace, student, out))


@cli.command("clean-work")
@_recipe
@work_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def clean_work(recipe: str, work: Path, yes: bool) -> None:
    """Start an exercise over: delete its runs, and move your files away.

    Your own files go to `work/.removed/`.
    """
    from harness.run.files import EXPERIMENT
    from harness.workspace.workspace import REPORT, make_command, remove_workspace
    from harness.written.exercise import FileExercise, load_exercise

    found = load_exercise(recipe)
    theirs = found.file if isinstance(found, FileExercise) else f"{EXPERIMENT} and {REPORT}"
    if not (work / recipe).is_dir():
        raise UserError(f"There is no workspace {work / recipe}, so there is nothing to delete.")
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(
                f"There is no terminal to ask whether to delete the runs of {recipe}: add --yes (YES=1) to delete them."
            )
        if not click.confirm(f"Move {theirs} to another folder and delete everything else in {work / recipe}?"):
            click.echo("Nothing was changed.")
            return
    kept = remove_workspace(work, recipe)
    click.echo(f"Moved to {kept}: {theirs}. Next: {make_command('exercise', work / recipe)}")


@cli.command()
@click.argument("dataset", metavar="DATASET")
def fetch(dataset: str) -> None:
    """Download DATASET (mnist or cifar10) and verify its checksums."""
    from harness.data.loading import fetch_dataset
    from harness.recipes.suite import as_typed

    fetched = fetch_dataset(dataset)
    again = f"make exercise BREAK=huge_lr DATASET={fetched.name}"
    click.echo(
        f"{fetched.name}: {len(fetched.train)} training and {len(fetched.validation)} validation examples, digest"
        f" {fetched.digest[:16]}. Next: {as_typed(again)}"
    )


@cli.command()
def doctor() -> None:
    """Check whether runs on this machine give the same bytes as on other machines."""
    from harness.doctor.report import run_doctor

    sys.exit(run_doctor())


cli.add_command(interview)
add_check_commands(cli)


def main() -> NoReturn:
    """Run the `harness` command and exit."""
    run_command(cli, "harness")
