"""The process that trains: it reads one job from standard input and reports on a pipe. Only `launch` starts it."""

import errno
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from harness.errors import UserError, from_os_error, naming
from harness.run_folder import (
    JOB_FILE,
    locked_job_file,
    partial_folder,
    prepare_partial,
    publish,
    refuse_foreign_folder,
)
from harness.settings import RunJob

_METRICS_LOG = "metrics.log"
_CHECKPOINT = "checkpoint.pt"
_REPORT_EVERY = 0.05  # seconds between two reports of progress: enough for a bar that moves smoothly


class Reporter:
    """Sends events to the parent, one JSON object a line."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._pipe = os.fdopen(descriptor, "w", encoding="utf-8")
        self._last = 0.0

    def send(self, event: str, **fields: Any) -> None:
        """Send one event. Without a parent to hear it, this process ends."""
        try:
            self._pipe.write(json.dumps({"event": event, **fields}) + "\n")
            self._pipe.flush()
        except BrokenPipeError:
            os._exit(1)

    def progress(self, step: int, steps: int, loss: float) -> None:
        """Report that `step` of `steps` batches are done, at most a few times a second."""
        now = time.monotonic()
        if step == steps or now - self._last >= _REPORT_EVERY:
            self._last = now
            self.send("progress", step=step, steps=steps, loss=str(loss))


def execute(job: RunJob, reporter: Reporter) -> None:
    """Make the run. Its folder takes the final name only when everything is in it."""
    from harness import run_files  # it imports torch
    from harness.data.loading import load_dataset
    from harness.experiment import tensor_data
    from harness.load_experiment import load_experiment
    from harness.numerics import apply_numerics
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


def _interrupt(number: int, frame: FrameType | None) -> None:
    # At a terminal the signal comes twice: from there, and from the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """End this process when the parent's end of standard input closes; an experiment sees it empty."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)  # like a kill: what was saved is whole at any moment

    threading.Thread(target=watch, daemon=True).start()


def main() -> int:
    """Run the job on standard input; exit 0, 2 for a user's mistake, 3 for a fault of ours, 130 when interrupted."""
    # Until the run can be resumed there is nothing to save, and a traceback out of an import helps nobody.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    reporter = Reporter(int(sys.argv[1]))
    line = sys.stdin.readline()
    if not line:
        return 1  # the parent is gone
    job = RunJob.from_json(line)
    _end_with_parent()
    try:
        import torch  # noqa: F401 - a second or two, best spent before Ctrl-C is caught

        signal.signal(signal.SIGINT, _interrupt)
        execute(job, reporter)
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        reporter.send("user_error", message=str(error))
        return 2
    except OSError as error:
        mistake = _mistake(error, partial_folder(Path(job.folder)))
        if mistake is not None:
            reporter.send("user_error", message=str(mistake))
            return 2
        _report_fault(reporter)
        return 3
    except Exception:
        _report_fault(reporter)
        return 3
    return 0


def _mistake(error: OSError, partial: Path) -> UserError | None:
    """Return the sentence for what a person can mend: nothing of ours may be missing unless it was taken away."""
    mistake = from_os_error(error)
    if error.errno == errno.ENOENT and partial.parent.is_dir():
        if (partial / JOB_FILE).exists():
            return None
        return UserError(f"{partial} was removed while the run was at work: start the run again.")
    if mistake is not None and (partial / _CHECKPOINT).is_file():
        return UserError(f"{mistake} Then --resume (RESUME=1) goes on from {partial}.")
    return mistake


def _report_fault(reporter: Reporter) -> None:
    import traceback

    traceback.print_exc()
    reporter.send("fault")


if __name__ == "__main__":
    sys.exit(main())
