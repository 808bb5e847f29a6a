"""The process that measures: it reads one job from standard input and reports on a pipe. Only `examine` starts it."""

import sys
from pathlib import Path

from harness.checks.job import InstrumentJob
from harness.run.launch import Reporter, serve
from harness.run.metrics_log import to_strict

_UNNAMED = Path("experiment.py")


def execute(job: InstrumentJob, reporter: Reporter) -> None:
    """Hold each instrument to the experiment, which starts from its seed anew each time."""
    from harness.canonical_setup import apply_numerics
    from harness.checks.subject import Subject
    from harness.checks.table import look
    from harness.data.loading import load_dataset

    apply_numerics(job.settings.numerics, job.settings.device)
    path = Path(job.source_path) if job.source_path else _UNNAMED
    checkpoint = Path(job.checkpoint) if job.checkpoint else None
    subject = Subject(path, job.source, job.settings, load_dataset(job.settings.dataset), checkpoint)
    found = {}
    for done, name in enumerate(job.instruments):
        reporter.send("progress", step=done, steps=len(job.instruments), says=name)
        found[name] = to_strict(look(name, subject, **job.options).to_json())
    reporter.send("finished", result=found)


def main() -> int:
    """Measure what the job on standard input asks for; exit as `harness.run.launch.serve` says."""
    return serve(lambda line, reporter: execute(InstrumentJob.from_json(line), reporter))


if __name__ == "__main__":
    sys.exit(main())
