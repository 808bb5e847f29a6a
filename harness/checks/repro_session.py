"""What `harness repro` and `harness reproduce` do: pack the failing step, and go through it where it was unpacked."""

import tempfile
from pathlib import Path

from harness.checks.checks import Outcome
from harness.checks.evidence import Evidence
from harness.checks.job import InstrumentJob, examine
from harness.checks.report import Reported, header
from harness.checks.repro_files import EXPERIMENT, read_settings
from harness.checks.session import measured, print_json, write
from harness.checks.target import find_target
from harness.checks.terminal import show_reported
from harness.errors import naming
from harness.exercise import Asked
from harness.files import write_with_sha256
from harness.submission.archive import deterministic_tar_gz
from harness.workspace import read_source

# Of the folder inside the tarball: the same whatever the tarball is called.
_FOLDER = "repro"
_OUTCOMES = {
    "packed": Outcome(
        id="packed", sound=True, reading="The failing step is packed, with the state just before it."
    ),
    "nothing-sudden": Outcome(
        id="nothing-sudden",
        reading="No step of this run stands out: it fails as a whole, if it does. Name the step to show with --step.",
        next=("overfit",),
    ),
    "same": Outcome(id="same", sound=True, reading="It fails the same way here, to the byte of the log."),
    "differs": Outcome(
        id="differs",
        reading="Here that step gives another log: the failure depends on something that is not in the folder.",
        look="the versions in provenance.json beside those of this machine (harness doctor)",
    ),
}


def pack(
    exercise: str,
    work: Path,
    asked: Asked,
    *,
    untouched: bool,
    as_json: bool,
    page: Path | None,
    step: int | None,
    out: Path,
) -> None:
    """Write the reproducer's tarball and its digest, and show what it reproduces."""
    target = find_target(exercise, work, asked, untouched=untouched)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        options = {"folder": scratch} | ({} if step is None else {"step": step})
        evidence = measured(target, ("repro",), options)["repro"]
        members = {f"{_FOLDER}/{path.name}": path.read_bytes() for path in Path(scratch).iterdir()}
    with naming(out):
        write_with_sha256(out, deterministic_tar_gz(members))
    commands = (f"tar xzf {out} && harness reproduce {_FOLDER}",)
    reported = _reported("repro", f"harness repro {exercise}", evidence, commands)
    if page is not None:
        write(page, f"{exercise}: reproducer", target.words, [reported])
    if as_json:
        print_json(header(target) | {"out": str(out)} | reported.to_json())
    else:
        show_reported(reported, target.words)


def go_through(folder: Path, *, as_json: bool) -> bool:
    """Go through an unpacked reproducer; show whether it fails the same way, and return that.

    Raises `UserError` for a folder that is no reproducer or not whole.
    """
    source = read_source(folder / EXPERIMENT)
    job = InstrumentJob(
        settings=read_settings(folder),
        source=source,
        instruments=("reproduce",),
        source_path=str((folder / EXPERIMENT).resolve()),
        options={"folder": str(folder.resolve())},
    )
    evidence = examine(job)["reproduce"]
    reported = _reported("reproduce", f"harness reproduce {folder}", evidence, ())
    if as_json:
        print_json({"folder": str(folder)} | reported.to_json())
    else:
        show_reported(reported, str(folder))
    return evidence.outcome == "same"


def _reported(name: str, command: str, evidence: Evidence, more: tuple[str, ...]) -> Reported:
    outcome = _OUTCOMES[evidence.outcome]
    place = () if outcome.look is None else (f"read: {outcome.look}",)
    return Reported(
        id=name,
        question="",
        command=command,
        minutes=3,
        evidence=evidence,
        outcome=outcome,
        next_lines=(*more, *place),
    )
