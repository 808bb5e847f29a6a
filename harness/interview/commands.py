"""Define the command group `harness interview`."""

from pathlib import Path

import click

from harness.console.command_line import kind_option, minutes_option, whole_number, work_option
from harness.recipes.suite import as_typed

# Each command imports its other modules inside its function, so that `harness --help` is fast.


@click.group(invoke_without_command=True)
@click.pass_context
@work_option
@kind_option
@click.option("--seed", metavar="N", type=whole_number(0), help="Draw the interview with this number.")
@minutes_option
@click.option("--again", is_flag=True, help="End the interview that is going on, and draw other faults.")
def interview(ctx: click.Context, work: Path, kind: str, seed: int | None, minutes: int, again: bool) -> None:
    """Practise an interview: a script with four faults, and a clock.

    Without a subcommand, start an interview, or show the clock of the one that is going on.
    """
    from harness.interview.report import write_page
    from harness.interview.room import start_room

    if ctx.invoked_subcommand is not None:
        ctx.obj = work
        return
    room, started = start_room(work, kind, seed=seed, minutes=minutes, again=again)
    page = write_page(room)
    if started:
        click.echo(f"Four faults are in {room.script}. You have {minutes} minutes from now.")
    click.echo(f"{room.folder}: {room.clock()}.")
    click.echo("Next:")
    click.echo(f"  1. read {room.folder / 'TASK.md'}; the clock is also in {page}")
    click.echo(f"  2. look at the first run in {room.folder / 'runs' / '0' / 'run.html'}, and edit {room.script}")
    click.echo(as_typed("  3. make interview-run, as often as you like; make finish ends the interview"))


@interview.command()
@click.pass_obj
def run(work: Path) -> None:
    """Run the script, and keep the run."""
    from harness.interview.report import write_page
    from harness.interview.room import open_room

    room = open_room(work)
    room.require_open()
    room.run()
    click.echo(room.state.made[-1].says)
    click.echo(f"{room.run_page()} shows it beside the first run. {room.clock()}.")
    write_page(room)


@interview.command()
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@click.pass_obj
def checks(work: Path, names: tuple[str, ...]) -> None:
    """Run the checks of scripts on the script, all by default. It is noted that you did."""
    from harness.checks import checks_for, run_checks
    from harness.checks.core.library import load_check_for
    from harness.checks.core.report import CheckReport
    from harness.interview.room import open_room
    from harness.run.settings import RunSettings
    from harness.student.show_checks import show, show_heading
    from harness.workspace.workspace import read_source

    room = open_room(work)
    room.require_open()
    source = read_source(room.script)
    wanted = [name.replace("-", "_") for name in names] or [*checks_for(source)]
    settings = RunSettings(seed=room.interview.seed, dataset=room.interview.dataset)
    found = run_checks(source, settings, wanted, source_path=room.script, bar=True)
    reports = [CheckReport(load_check_for(name, source), str(room.script), one) for name, one in found.items()]
    unsound = [f"{one.title} {one.outcome.id}" for one in reports if not one.outcome.sound]
    room.note("checks", ", ".join(unsound) or "nothing found")
    show_heading(f"{room.script}: {room.clock()}")
    show(reports, source=source)


@interview.command()
@click.pass_obj
def pause(work: Path) -> None:
    """Stop the clock, or let it go on. Both are noted."""
    from harness.interview.report import write_page
    from harness.interview.room import open_room

    room = open_room(work)
    room.require_open()
    room.note("go on" if room.is_paused else "pause")
    write_page(room)
    click.echo(f"{room.clock()}.")


@interview.command("open")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def open_(work: Path, archive: Path) -> None:
    """Open an interview that an interviewer sent you, and start its clock."""
    from harness.interview.hand_in import open_archive
    from harness.interview.report import write_page

    room = open_archive(archive, work)
    write_page(room)
    click.echo(f"Four faults are in {room.script}. You have {room.state.minutes} minutes from now.")
    click.echo(f"Next: read {room.folder / 'TASK.md'}")


@interview.command()
@click.option("--diary", is_flag=True, help="Also hand in each version of your script that you ran or checked.")
@click.pass_obj
def finish(work: Path, diary: bool) -> None:
    """End the interview, and judge it. A finished interview is judged again, with the script as it is now.

    An interview that an interviewer sent you is not judged here, but packed into a file for the interviewer.
    """
    from harness.interview.hand_in import pack_answer
    from harness.interview.report import finish_room, show_verdict
    from harness.interview.room import open_room

    room = open_room(work)
    if not room.interview.faults:
        if not room.state.finished:
            room.finish()
        click.echo(f"Written: {pack_answer(room, diary=diary)}. Send it to your interviewer.")
        return
    click.echo("This takes a few minutes.", err=True)
    verdict = finish_room(room, lambda sentence: click.echo(sentence, err=True))
    for line in show_verdict(verdict):
        click.echo(line)
    click.echo("Next:")
    click.echo(
        f"  1. look at {room.folder / 'interview.html'}: the faults, your fixes, your diary, and the next questions"
    )
    click.echo(as_typed("  2. make interview AGAIN=1 draws other faults"))
