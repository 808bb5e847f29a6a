"""Ask students to predict the broken run before they start it, and compare the prediction with the run.

`harness.workspace.progress` stores the prediction, and the manifest of the submission contains it. A prediction earns
and costs no points, so nobody has a reason to copy the answers.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import click
from rich.console import Console

from harness.checks import checks_for
from harness.console.terminal import fold
from harness.errors import UserError, suggestion
from harness.recipes.recipe import Recipe
from harness.run.files import METRICS_LOG
from harness.run.metrics_log import batch_records, read_metrics_log
from harness.workspace.progress import MOST_WHY, NO_CHECK, Prediction, note_progress, progress_of
from harness.workspace.workspace import PROMPT, Workspace, read_source

_LITTLE, _HALF, _ALIKE = 0.05, 0.5, 0.1
# Maps each key of a prediction to its question, and to the possible answers with their meanings.
QUESTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "loss": (
        "Compared with the first loss, the mean training loss over the last quarter of the steps is",
        {
            "falls": "less than half of it",
            "falls-little": f"lower by more than {_LITTLE:.0%}, but not less than half",
            "stays": f"the same, within {_LITTLE:.0%}",
            "rises": f"higher by more than {_LITTLE:.0%}",
            "no-number": "NaN or infinite",
        },
    ),
    "half_rate": (
        "With half the learning rate, the mean loss over the last quarter of the steps is",
        {
            "lower": f"lower by more than {_ALIKE:.0%}",
            "same": f"the same, within {_ALIKE:.0%} (or both are NaN)",
            "higher": f"higher by more than {_ALIKE:.0%}",
        },
    ),
}
CHECK = "The check that finds the fault is"
# Halves the learning rate during each optimizer step and doubles it afterwards. Both are exact, so schedules are not
# affected.
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
    """Return the source of an experiment with code added that halves the learning rate at each step."""
    return source + _HALVED


def refuse_late(workspace: Workspace) -> None:
    """Raise `UserError` if the workspace already has a prediction or a broken run."""
    if progress_of(workspace.folder).prediction is not None:
        raise UserError(f"You have already predicted the run of {workspace.recipe}. You cannot change a prediction.")
    if workspace.has_run("broken"):
        raise UserError(f"The run of {workspace.recipe} already exists: you can predict only before the run.")


def ask_for(workspace: Workspace, recipe: Recipe, given: Mapping[str, str | None]) -> dict[str, str]:
    """Return all answers. Ask at the terminal for each answer that is not in `given`, the answers given as options.

    Raises `UserError` if an answer is missing and there is no terminal, or if it is too late to predict.
    """
    refuse_late(workspace)
    answers = {name: answer for name, answer in given.items() if answer is not None}
    if recipe.triage == "off":
        answers["check"] = NO_CHECK
    missing = [name for name in (*QUESTIONS, "check", "why") if name not in answers]
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise UserError(f"There is no terminal to ask for the answers: add {options}.")
    for name in missing:
        if name in QUESTIONS:
            asks, known = QUESTIONS[name]
            click.echo("\n".join([f"{asks}:", *(f"  {answer:<13}{means}" for answer, means in known.items())]))
            answers[name] = click.prompt("Your answer", type=click.Choice([*known]), show_choices=False)
        elif name == "check":
            click.echo(
                f"{CHECK}:\n  a name from the list that harness checks prints, or {NO_CHECK} if no check finds a fault"
            )
            answers[name] = click.prompt("Your answer")
        else:
            answers[name] = click.prompt("Why? In one sentence")
    return answers


def seal(workspace: Workspace, answers: Mapping[str, str]) -> None:
    """Store a prediction, which cannot be changed later.

    Raises `UserError` for an unknown answer, or if it is too late.
    """
    refuse_late(workspace)
    for name, (_, known) in QUESTIONS.items():
        if answers[name] not in known:
            raise UserError(f"{answers[name]!r} is not one of the answers: choose from {', '.join(known)}.")
    check = answers["check"].replace("-", "_")
    every = checks_for(read_source(workspace.experiment))
    if check not in (NO_CHECK, *every):
        names = [NO_CHECK, *(name.replace("_", "-") for name in every)]
        raise UserError(f"There is no check {answers['check']!r}: {suggestion(answers['check'], names)}")
    why = " ".join(answers["why"].split())
    if not 0 < len(why) <= MOST_WHY:
        raise UserError(f"Your reason has {len(why)} characters: write 1 to {MOST_WHY}.")
    note_progress(workspace.folder, prediction={**answers, "check": check, "why": why})


def show_what_to_predict(workspace: Workspace) -> None:
    """Print that the student has to predict the run before it starts, and how to do this."""
    console = _console()
    console.print(f"{workspace.recipe}: predict first", style="bold")
    _print(console, "Before you run this experiment, say what it will do.")
    console.print("Next:", style="bold")
    console.print(f"  1. read {workspace.experiment}, and {workspace.folder / PROMPT}")
    console.print(f"  2. {workspace.command('predict')}")


def show_prediction(workspace: Workspace) -> None:
    """Print the prediction and, if the runs exist, the right answers. Raises `UserError` if there is no prediction."""
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
    """Return {key: right answer} for each question that the finished runs answer."""
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
    """Return (key, question, answer in words) for each part of a prediction."""
    said = [(name, asks, known[getattr(prediction, name)]) for name, (asks, known) in QUESTIONS.items()]
    return [*said, ("check", CHECK, prediction.check.replace("_", "-"))] if with_check else said


def _losses(folder: Path) -> list[float]:
    return [float(record["loss"]) for record in batch_records(read_metrics_log(folder / METRICS_LOG))]


def _end(losses: Sequence[float]) -> float:
    """Return the mean loss over the last quarter of the steps."""
    return fmean(losses[-max(1, len(losses) // 4) :])


def course_of(losses: Sequence[float]) -> str:
    """Return the right answer to the question about the training loss, given the losses of all steps."""
    first, end = losses[0], _end(losses)
    if not math.isfinite(end) or not math.isfinite(first):
        return "no-number"
    if abs(end - first) <= _LITTLE * abs(first):
        return "stays"
    if end > first:
        return "rises"
    return "falls" if end < _HALF * first else "falls-little"


def compare_half_rate(whole: float, halved: float) -> str:
    """Return the right answer to the question about half the learning rate, given the final losses with both rates."""
    if not math.isfinite(whole) or not math.isfinite(halved):
        if math.isfinite(whole) == math.isfinite(halved):
            return "same"
        return "lower" if math.isfinite(halved) else "higher"
    if abs(halved - whole) <= _ALIKE * abs(whole):
        return "same"
    return "lower" if halved < whole else "higher"
