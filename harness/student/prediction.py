"""Predict first: what a student expects of the broken run, answered before it is made and kept as it was.

`harness.workspace.progress` notes it beside the workspaces, and the manifest of the submission has it. It earns and
costs no points: then nobody has a reason to answer late, or to copy the answers.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import click
from rich.console import Console

from harness.checks import check_names
from harness.console.terminal import fold
from harness.errors import UserError, suggestion
from harness.recipes.recipe import Recipe
from harness.run.files import METRICS_LOG
from harness.run.metrics_log import batch_records, read_metrics_log
from harness.workspace.progress import MOST_WHY, NO_CHECK, Prediction, note_progress, progress_of
from harness.workspace.workspace import PROMPT, Workspace

_LITTLE, _HALF, _ALIKE = 0.05, 0.5, 0.1
# By key of a prediction: the question, and its answers with what each means.
QUESTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "loss": (
        "Beside its first value, the mean training loss over the last quarter of the steps is",
        {
            "falls": "less than half of it",
            "falls-little": f"lower by more than {_LITTLE:.0%}, but not less than half",
            "stays": f"the same, within {_LITTLE:.0%}",
            "rises": f"higher by more than {_LITTLE:.0%}",
            "no-number": "NaN or infinite",
        },
    ),
    "half_rate": (
        "With half the learning rate, beside the run as it is, the same mean is",
        {
            "lower": f"lower by more than {_ALIKE:.0%}",
            "same": f"the same, within {_ALIKE:.0%} (or both are NaN)",
            "higher": f"higher by more than {_ALIKE:.0%}",
        },
    ),
}
CHECK = "The check that finds the fault is"
# Halves each step of the optimizer, whatever its schedule sets: the rate is doubled again after the step, exactly.
_HALVED = """

_build_optimizer_as_it_is = build_optimizer


def build_optimizer(model):
    def scale(optimizer, factor):
        for group in optimizer.param_groups:
            group["lr"] *= factor

    optimizer = _build_optimizer_as_it_is(model)
    optimizer.register_step_pre_hook(lambda optimizer, *_: scale(optimizer, 0.5))
    optimizer.register_step_post_hook(lambda optimizer, *_: scale(optimizer, 2.0))
    return optimizer
"""


def with_half_rate(source: str) -> str:
    """Return the experiment with half the learning rate at each step."""
    return source + _HALVED


def refuse_late(workspace: Workspace) -> None:
    """Raise `UserError` if there is a prediction, or the run that it would be about."""
    if progress_of(workspace.folder).prediction is not None:
        raise UserError(f"You have predicted the run of {workspace.recipe} already. What you said stays as it is.")
    if workspace.has_run("broken"):
        raise UserError(f"The run of {workspace.recipe} is there already: a prediction comes before it.")


def ask_for(workspace: Workspace, recipe: Recipe, given: Mapping[str, str | None]) -> dict[str, str]:
    """Return the answers that were given, and those that are now asked for.

    Raises `UserError` if something must be asked and there is no terminal, and as `refuse_late` does.
    """
    refuse_late(workspace)
    answers = {name: answer for name, answer in given.items() if answer is not None}
    if recipe.triage == "off":
        answers["check"] = NO_CHECK
    missing = [name for name in (*QUESTIONS, "check", "why") if name not in answers]
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise UserError(f"There is no terminal to ask at: give {options}.")
    for name in missing:
        if name in QUESTIONS:
            asks, known = QUESTIONS[name]
            click.echo("\n".join([f"{asks}:", *(f"  {answer:<13}{means}" for answer, means in known.items())]))
            answers[name] = click.prompt("Your answer", type=click.Choice([*known]), show_choices=False)
        elif name == "check":
            click.echo(f"{CHECK}:\n  a name that harness checks lists, or {NO_CHECK} if none finds a fault")
            answers[name] = click.prompt("Your answer")
        else:
            answers[name] = click.prompt("Why? In one sentence")
    return answers


def seal(workspace: Workspace, answers: Mapping[str, str]) -> None:
    """Note a prediction, once. Raises `UserError` for an unknown answer, and as `refuse_late` does."""
    refuse_late(workspace)
    for name, (_, known) in QUESTIONS.items():
        if answers[name] not in known:
            raise UserError(f"{answers[name]!r} is no answer: choose from {', '.join(known)}.")
    check = answers["check"].replace("-", "_")
    if check not in (NO_CHECK, *check_names()):
        names = [NO_CHECK, *(name.replace("_", "-") for name in check_names())]
        raise UserError(f"There is no check {answers['check']!r}: {suggestion(answers['check'], names)}")
    why = " ".join(answers["why"].split())
    if not 0 < len(why) <= MOST_WHY:
        raise UserError(f"Your reason has {len(why)} characters: write 1 to {MOST_WHY}.")
    note_progress(workspace.folder, prediction={**answers, "check": check, "why": why})


def show_what_to_predict(workspace: Workspace) -> None:
    """Print that the run is made after the prediction, and how to go on."""
    console = _console()
    console.print(f"{workspace.recipe}: predict first", style="bold")
    _print(console, "Say what this experiment will do. Its run is made after that.")
    console.print("Next:", style="bold")
    console.print(f"  1. read {workspace.experiment}, and {workspace.folder / PROMPT}")
    console.print(f"  2. {workspace.command('predict')}")


def show_prediction(workspace: Workspace) -> None:
    """Print a prediction; once the runs are there, with what they decide. Raises `UserError` if there is none."""
    prediction = progress_of(workspace.folder).prediction
    if prediction is None:
        raise UserError(f"There is no prediction of {workspace.recipe}: {workspace.command('predict')}")
    console = _console()
    happened = outcomes_of(workspace) if workspace.has_run("broken") else {}
    console.print("You predicted", style="bold")
    for name, asks, answer in answers_of(prediction, with_check=workspace.exercise.triage != "off"):
        mark, truth = "", ""
        if name in happened:
            is_right = happened[name] == getattr(prediction, name)
            mark, truth = ("✓ ", "") if is_right else ("✗ ", f" It is {QUESTIONS[name][1][happened[name]]}.")
        _print(console, f"{mark}{asks} {answer}.{truth}")
    _print(console, f"Because: {prediction.why}")
    if not happened:
        console.print("Next:", style="bold")
        console.print(f"  {workspace.command('exercise')}")


def _console() -> Console:
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def _print(console: Console, text: str) -> None:
    console.print(fold(text, console.width if console.is_terminal else None, indent=2, hang=2))


def outcomes_of(workspace: Workspace) -> dict[str, str]:
    """Return the right answer of each question that the runs decide, by its key."""
    broken = _losses(workspace.run_folder("broken"))
    found = {"loss": course_of(broken)}
    halved = half_rate_folder(workspace)
    if (halved / METRICS_LOG).is_file():
        found["half_rate"] = compare_half_rate(_end(broken), _end(_losses(halved)))
    return found


def half_rate_folder(workspace: Workspace) -> Path:
    """Return the folder of the run with half the learning rate."""
    return workspace.run_folder("broken").with_name("half_rate")


def answers_of(prediction: Prediction, *, with_check: bool = True) -> list[tuple[str, str, str]]:
    """Return (key, question, answer) of each part of a prediction, in words."""
    said = [(name, asks, known[getattr(prediction, name)]) for name, (asks, known) in QUESTIONS.items()]
    return [*said, ("check", CHECK, prediction.check.replace("_", "-"))] if with_check else said


def _losses(folder: Path) -> list[float]:
    return [float(record["loss"]) for record in batch_records(read_metrics_log(folder / METRICS_LOG))]


def _end(losses: Sequence[float]) -> float:
    """Return the mean loss over the last quarter of the steps."""
    return fmean(losses[-max(1, len(losses) // 4) :])


def course_of(losses: Sequence[float]) -> str:
    """Return the right answer about the training loss: `losses` are those of all steps."""
    first, end = losses[0], _end(losses)
    if not math.isfinite(end) or not math.isfinite(first):
        return "no-number"
    if abs(end - first) <= _LITTLE * abs(first):
        return "stays"
    if end > first:
        return "rises"
    return "falls" if end < _HALF * first else "falls-little"


def compare_half_rate(whole: float, halved: float) -> str:
    """Return the right answer about the loss at the end with half the rate, beside the loss with the whole one."""
    if not math.isfinite(whole) or not math.isfinite(halved):
        if math.isfinite(whole) == math.isfinite(halved):
            return "same"
        return "lower" if math.isfinite(halved) else "higher"
    if abs(halved - whole) <= _ALIKE * abs(whole):
        return "same"
    return "lower" if halved < whole else "higher"
