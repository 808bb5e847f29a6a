"""Runs the parts of the self-check, shows each, and writes the page."""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from grader.replay.cache import default_folder, trim
from grader.replay.replayer import Replayer, Sandbox, open_sandbox
from grader.replay.replays import Replays, local_executor
from grader.sandbox import sandbox_problem
from grader.score.solutions import SOLUTIONS, Variant, load_variants
from grader.score.weights import load_weights
from grader.selfcheck.answers import answers_section
from grader.selfcheck.handed_in import Submissions
from grader.selfcheck.healthy import healthy_section
from grader.selfcheck.parts import PARTS, Part
from grader.selfcheck.section import Section, page, show
from grader.selfcheck.seeds import seeds_section
from grader.selfcheck.trial_memory import TrialMemory
from grader.selfcheck.variants import variants_section
from grader.session import Grading
from grader.written.answers.known import load_answers
from harness.data.loading import default_cache
from harness.errors import UserError
from harness.files import write_whole
from harness.recipe import EXERCISES, ROOT, Recipe
from harness.written.file_exercise import FileExercise, exercise_ids, load_exercise

PAGE = ROOT / "docs" / "calibration.md"
_SANDBOXED: tuple[Part, ...] = ("variants", "answers")
_WIDE = 160  # columns, where the output goes to no terminal


@dataclass(frozen=True)
class SelfcheckOptions:
    """What a maintainer asked for; no `parts` and no `only` mean all of them."""

    seeds: int
    jobs: int
    parts: tuple[Part, ...] = ()
    only: tuple[str, ...] = ()
    held_back: bool = True
    fresh: bool = False
    write: bool = False
    cache: Path | None = None
    replays: Path | None = None
    exercises: Path = EXERCISES
    solutions: Path = SOLUTIONS


def run_selfcheck(options: SelfcheckOptions) -> int:
    """Run the parts, print each, and return 0 if everything agrees, else 1.

    Raises `UserError` for wrong use: an unknown recipe, no sandbox, a page of less than the whole.
    """
    if options.write and (options.only or options.parts or not options.held_back):
        raise UserError("--write makes the whole page: leave --only, --part and --without-held-back out.")
    parts = tuple(part for part in PARTS if part in (options.parts or PARTS))
    chosen = [
        load_exercise(name, options.exercises) for name in options.only or exercise_ids(options.exercises)
    ]
    problem = sandbox_problem() if set(parts) & set(_SANDBOXED) else None
    if problem is not None:
        raise UserError(problem)
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    sections = []
    memory = options.replays or default_folder()
    trim(memory)
    with (
        tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch,
        open_sandbox("warm", options.jobs) as sandbox,
    ):
        made = _parts(chosen, options, Path(scratch), sandbox, memory)
        for part in parts:
            sections.append(made[part]())
            show(sections[-1], console)
    if options.write:
        text = page(sections, f"grader selfcheck --seeds {options.seeds} --write")
        write_whole({PAGE: text.encode()})
    return 1 if any(section.disagreements for section in sections) else 0


def _parts(
    chosen: Sequence[Recipe | FileExercise],
    options: SelfcheckOptions,
    scratch: Path,
    sandbox: Sandbox,
    memory: Path,
) -> Mapping[Part, Callable[[], Section]]:
    """Return what makes each part."""
    recipes = [item for item in chosen if isinstance(item, Recipe)]
    cache, jobs, solutions = options.cache or default_cache(), options.jobs, options.solutions
    replayer = Replayer(sandbox, cache)
    executor = local_executor(replayer, jobs=jobs)
    trials = TrialMemory(memory, fresh=options.fresh)

    def asked(item: Variant) -> bool:
        return options.held_back or not item.held_back

    def seeds() -> Section:
        return seeds_section(recipes, seeds=options.seeds, jobs=jobs, cache=cache, memory=trials)

    def healthy() -> Section:
        return healthy_section(
            recipes, seeds=options.seeds, jobs=jobs, cache=cache, memory=trials, solutions=solutions
        )

    def variants() -> Section:
        replays = Replays(executor, memory, fresh=options.fresh)
        submissions = Submissions(memory, fresh=options.fresh)
        wanted = [
            (recipe, item)
            for recipe in recipes
            for item in filter(asked, load_variants(recipe.id, solutions))
        ]
        grading = Grading(replays, replayer, memory, load_weights(), jobs, fresh=options.fresh)
        return variants_section(wanted, grading, submissions, scratch, jobs=jobs)

    def answers() -> Section:
        wanted = [
            (exercise, answer)
            for exercise in chosen
            if isinstance(exercise, FileExercise)
            for answer in load_answers(exercise.id, solutions)
        ]
        return answers_section(wanted, replayer, jobs=jobs)

    return {"seeds": seeds, "healthy": healthy, "variants": variants, "answers": answers}
