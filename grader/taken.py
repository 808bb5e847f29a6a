"""A submission that was taken in: what has to be run for it, and what it claims."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from grader.intake.rejected import Rejected
from grader.intake.submission import Submission, read_settings
from grader.score.evidence import RUNS, Claim, Run, recipe_of
from grader.syntax.parse import program_digest
from harness.data import DATASETS
from harness.run.settings import RunSettings


@dataclass(frozen=True)
class Taken:
    """A submission that was taken in, without its checkpoints."""

    name: str
    sha256: str
    recipe: str
    student: str
    settings: RunSettings
    command_problem: str
    source: str
    tree: str
    claims: Mapping[Run, Claim]
    report: str | None
    missing: tuple[str, ...]
    ignored: tuple[str, ...]
    hints: int = 0


def take_in(submission: Submission) -> Taken:
    """Return what has to be run for a submission. Raises `Rejected` where its data set does not fit its recipe."""
    manifest = submission.manifest
    recipe = recipe_of(manifest.recipe)
    if DATASETS.get(manifest.dataset) != DATASETS[recipe.dataset]:
        raise Rejected("dataset", f"{recipe.id} cannot be run on {manifest.dataset}.")
    settings = RunSettings(seed=manifest.seed, dataset=manifest.dataset)
    problem = ""
    try:
        told = read_settings(submission)
        # A run on a card is replayed on the processor: it is of another platform class.
        chosen = {
            run: replace(settings, epochs=of.epochs, batch_size=of.batch_size) for run, of in told.items()
        }
        settings = chosen["fixed"]
        if chosen["broken"] != chosen["fixed"]:
            problem = "command.txt has other settings for the broken run than for the fixed one."
        elif any(replace(of, device="cpu") != settings for of in told.values()):
            problem = "command.txt has options that make exercise does not give."
    except ValueError as error:
        problem = str(error)
    source = submission.files["experiment.py"].decode("utf-8")
    return Taken(
        name=submission.name,
        sha256=submission.sha256,
        recipe=recipe.id,
        student=manifest.student,
        settings=settings,
        command_problem=problem,
        source=source,
        tree=program_digest(source),
        claims=claims_of(submission),
        report=_text(submission.files.get("report.md")),
        missing=submission.missing,
        ignored=submission.ignored,
        hints=manifest.hints,
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def claims_of(submission: Submission) -> dict[Run, Claim]:
    """Return what a submission says of its two runs."""
    # The intake has compared every file with the manifest's hash of it.
    hashes = submission.manifest.files
    return {
        run: Claim(
            log=submission.files.get(f"runs/{run}/metrics.log"),
            checkpoint_sha256=hashes.get(f"runs/{run}/checkpoint.pt"),
            platform=_platform(submission, run),
        )
        for run in RUNS
    }


def _platform(submission: Submission, run: Run) -> Mapping[str, Any] | None:
    try:
        meta = json.loads(submission.files[f"runs/{run}/checkpoint.pt.meta.json"])
        platform = meta["platform_class"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return platform if isinstance(platform, dict) else None
