"""What a process is asked to measure, as data that travels to it, and the evidence that comes back."""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from harness.checks.evidence import Evidence
from harness.run.launch import ChildJob, launch_child
from harness.run.settings import RunSettings


@dataclass(frozen=True)
class InstrumentJob:
    """An experiment, the settings of its run, and the instruments to hold to it, by id; `options` go to each.

    `source_path` is the file that a person edits, if there is one: errors name it. `checkpoint` is that of a run of
    this source, for the instruments that look at a trained network. Instruments compute on the CPU, whatever device
    the run is made on.
    """

    settings: RunSettings
    source: str
    instruments: tuple[str, ...]
    source_path: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None

    def to_json(self) -> str:
        """Return the job as one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "InstrumentJob":
        """Undo `to_json`."""
        fields: dict[str, Any] = json.loads(text)
        settings = RunSettings(**fields.pop("settings"))
        return cls(settings=settings, instruments=tuple(fields.pop("instruments")), **fields)


def examine(job: InstrumentJob, *, bar: bool = True) -> dict[str, Evidence]:
    """Measure in a process of its own, with the numerics of a run; return the evidence by instrument, in their order.

    Raises `UserError` for a mistake in the experiment, `Stopped` after Ctrl-C, and `ChildFault` for a fault of ours.
    """
    job = dataclasses.replace(job, settings=dataclasses.replace(job.settings, device="cpu"))
    child = ChildJob(
        module="harness.checks.child",
        line=job.to_json(),
        numerics=job.settings.numerics,
        label="measuring",
        what="measurement",
        place=job.source_path or "The experiment",
        go_on="give the same command again",
    )
    found = launch_child(child, bar=bar)
    return {name: Evidence.model_validate(evidence) for name, evidence in found.items()}
