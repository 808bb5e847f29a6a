"""The process that trains: it reads one job from standard input and reports on a pipe. Only `launch` starts it."""

import errno
import signal
import sys
from pathlib import Path

from harness.errors import UserError, from_os_error, naming
from harness.run.child_process import Reporter, serve
from harness.run.run_folder import (
    JOB_FILE,
    locked_job_file,
    partial_folder,
    prepare_partial,
    publish,
    refuse_foreign_folder,
)
from harness.run.settings import RunJob

_METRICS_LOG = "metrics.log"
_CHECKPOINT = "checkpoint.pt"


def execute(job: RunJob, reporter: Reporter) -> None:
    """Make the run. Its folder takes the final name only when everything is in it."""
    from harness.data.loading import load_dataset
    from harness.run import run_files  # it imports torch
    from harness.run.experiment import tensor_data
    from harness.run.load_experiment import load_experiment
    from harness.run.numerics import apply_numerics
    from harness.trainer import train

    settings = job.settings
    apply_numerics(settings.numerics, settings.device)
    _check_device(settings.device)
    folder = Path(job.folder)
    refuse_foreign_folder(folder)
    partial = partial_folder(folder)
    with naming(partial), locked_job_file(partial) as job_file:
        prepare_partial(job, partial, job_file)
        data = load_dataset(settings.dataset, cache=Path(job.cache) if job.cache else None)
        # The student's own path, so that an error names the file to mend, where the source came from one.
        source_path = Path(job.source_path) if job.source_path else partial / "experiment.py"
        try:
            experiment = load_experiment(source_path, job.source)
            result = train(
                experiment,
                tensor_data(data),
                settings,
                partial,
                resume=job.resume,
                progress=reporter.progress,
            )
        except UserError as error:
            raise UserError(f"{error}{_where_the_log_is(partial)}") from error
        summary = run_files.write_run_files(job, partial, result, data)
        # From here on there is nothing left to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        publish(partial, folder)
    reporter.send("finished", result=summary)


def _check_device(device: str) -> None:
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(
            "There is no CUDA card that this PyTorch can use: leave DEVICE=cuda out to run on the CPU."
        )


def _where_the_log_is(partial: Path) -> str:
    log = partial / _METRICS_LOG
    return f" The log up to there is kept in {log}." if log.is_file() and log.stat().st_size else ""


def _mistake(error: OSError, line: str) -> UserError | None:
    """Return the sentence for what a person can mend: nothing of ours may be missing unless it was taken away."""
    partial = partial_folder(Path(RunJob.from_json(line).folder))
    mistake = from_os_error(error)
    if error.errno == errno.ENOENT and partial.parent.is_dir():
        if (partial / JOB_FILE).exists():
            return None
        return UserError(f"{partial} was removed while the run was at work: start the run again.")
    if mistake is not None and (partial / _CHECKPOINT).is_file():
        return UserError(f"{mistake} Then --resume (RESUME=1) goes on from {partial}.")
    return mistake


def main() -> int:
    """Run the job on standard input; exit 0, 2 for a user's mistake, 3 for a fault of ours, 130 when interrupted."""
    return serve(lambda line, reporter: execute(RunJob.from_json(line), reporter), _mistake)


if __name__ == "__main__":
    sys.exit(main())
