"""The minimal reproducer: a folder from which any machine with the harness goes through the failing step again."""

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.checks.differences import first_difference
from harness.checks.evidence import Evidence, Table, short
from harness.checks.failure import find_failure, value_of
from harness.checks.repro_files import (
    BEFORE,
    EXPECTED,
    EXPERIMENT,
    JOB,
    PROVENANCE,
    README,
    Failure,
    read_expected,
    read_failure,
)
from harness.checks.subject import Subject
from harness.checks.walk import Walk
from harness.run.checkpoint import CHECKPOINT, checkpoint_bytes, load_checkpoint
from harness.run.metrics_log import format_record, log_lines, parse_log, to_strict
from harness.run.provenance import git_commit, harness_hash, platform_class, versions
from harness.workspace import source_hash

# Enough to see the way into the failure, little enough to read.
SHORT_LOG = 20

_TEMPLATE = Path(__file__).parent / "repro_readme.md"


@dataclass(frozen=True)
class Repro:
    """What was packed: the failure, and the size of what reproduces it."""

    failure: Failure
    files: dict[str, int]
    lines_before: int


def measure(subject: Subject, *, folder: str, step: int | None = None) -> Repro:
    """Make the run up to its failure and write the reproducer's files into an empty folder."""
    target = Path(folder)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        before, moment, failure = find_failure(subject, Path(scratch), step=step)
    kept = before[-SHORT_LOG:]
    provenance = {
        "git_commit": git_commit(),
        "harness_sha256": harness_hash(),
        "source_sha256": source_hash(subject.source),
        "dataset": subject.data.name,
        "dataset_digest": subject.data.digest,
        "versions": versions(),
        "platform_class": platform_class(subject.settings.numerics, subject.settings.device),
    }
    job = {"format_version": 1, "settings": asdict(subject.settings), "failure": asdict(failure)}
    files = {
        EXPERIMENT: subject.source.encode(),
        JOB: _json(job),
        PROVENANCE: _json(provenance),
        CHECKPOINT: checkpoint_bytes(moment.before),
        BEFORE: "".join(map(format_record, kept)).encode(),
        EXPECTED: "".join(map(format_record, moment.records)).encode(),
        README: _readme(subject, failure, len(kept)).encode(),
    }
    for name, content in files.items():
        (target / name).write_bytes(content)
    return Repro(failure, {name: len(content) for name, content in files.items()}, len(kept))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(to_strict(value), indent=1, allow_nan=False) + "\n").encode()


def _readme(subject: Subject, failure: Failure, lines: int) -> str:
    settings = subject.settings
    words = {
        "{step}": str(failure.step),
        "{quantity}": failure.quantity,
        "{value}": short(failure.value),
        "{what}": failure.what,
        "{dataset}": settings.dataset,
        "{seed}": str(settings.seed),
        "{lines}": str(lines),
        "{versions}": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }
    text = _TEMPLATE.read_text(encoding="utf-8")
    for name, word in words.items():
        text = text.replace(name, word)
    return text


def show(measured: Repro) -> Evidence:
    """Return what is in the reproducer."""
    failure = measured.failure
    return Evidence(
        what=f"the run up to step {failure.step}, and the state just before it",
        outcome="packed" if failure.sudden else "nothing-sudden",
        said=f"step {failure.step}, {failure.quantity} = {short(failure.value)}: {failure.what}",
        figures={"step": failure.step, "quantity": failure.quantity, "value": failure.value},
        tables=(Table(caption="Files", columns=("file", "bytes"), rows=tuple(measured.files.items())),),
    )


@dataclass(frozen=True)
class Reproduced:
    """The failing step made again: the recorded lines of the log, and those of now."""

    failure: Failure
    expected: str
    found: str
    value: float | None

    @property
    def outcome(self) -> str:
        """Whether it failed the same way, to the byte of the log."""
        return "same" if self.expected == self.found else "differs"


def reproduce(subject: Subject, *, folder: str) -> Reproduced:
    """Go through the failing step of an unpacked reproducer. Raises `UserError` for one that is not whole."""
    place = Path(folder)
    failure = read_failure(place)
    expected = read_expected(place)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch, Walk(subject, Path(scratch)) as walk:
        walk.restore(load_checkpoint(place / CHECKPOINT))
        records = [walk.step()]
        epoch = walk.end_epoch()
        if epoch is not None:
            records.append(epoch)
    return Reproduced(
        failure, expected, "".join(map(format_record, records)), value_of(records, failure.quantity)
    )


def show_reproduced(measured: Reproduced) -> Evidence:
    """Return what was recorded beside what came out now."""
    failure = measured.failure
    logs = [parse_log(log_lines(text), "the log") for text in (measured.expected, measured.found)]
    difference = first_difference(*logs)
    return Evidence(
        what=f"step {failure.step} from the state before it",
        outcome=measured.outcome,
        said=f"step {failure.step}, {failure.quantity} = {short(measured.value)}, recorded {short(failure.value)}",
        figures={
            "step": failure.step,
            "quantity": failure.quantity,
            "recorded": failure.value,
            "now": measured.value,
            "log lines equal to the byte": measured.expected == measured.found,
            "first difference": None if difference is None else f"{difference.place}, {difference.quantity}",
        },
    )
