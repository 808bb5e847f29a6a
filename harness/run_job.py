"""The process that trains: it reads one job from standard input and reports on a pipe. Only `launch` starts it."""

import errno
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from harness.errors import UserError, from_os_error
from harness.settings import RunJob

JOB_FILE = "job.json"
_REPORT_EVERY = 0.05  # seconds between two reports of progress: enough for a bar that moves smoothly


class Reporter:
    """Sends events to the parent, one JSON object a line."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "w", encoding="utf-8")
        self._last = 0.0

    def send(self, event: str, **fields: Any) -> None:
        """Send one event; a parent that is gone is no reason to stop."""
        try:
            self._pipe.write(json.dumps({"event": event, **fields}) + "\n")
            self._pipe.flush()
        except BrokenPipeError:
            pass

    def progress(self, step: int, steps: int, loss: float) -> None:
        """Report that `step` of `steps` batches are done, at most a few times a second."""
        now = time.monotonic()
        if step == steps or now - self._last >= _REPORT_EVERY:
            self._last = now
            self.send("progress", step=step, steps=steps, loss=str(loss))


def partial_folder(folder: Path) -> Path:
    """Return where an unfinished run lies until it takes its final name."""
    return folder.with_name(folder.name + ".partial")


def execute(job: RunJob, reporter: Reporter) -> None:
    """Make the run. Its folder takes the final name only when everything is in it."""
    from harness import run_files  # it imports torch
    from harness.data import load_dataset
    from harness.experiment import load_experiment, tensor_data
    from harness.numerics import apply_numerics
    from harness.trainer import train

    settings = job.settings
    apply_numerics(settings.numerics)
    _check_device(settings.device)
    folder = Path(job.folder)
    partial = _prepare_partial(job, folder)
    source = partial / "experiment.py"
    data = load_dataset(settings.dataset, cache=Path(job.cache) if job.cache else None)
    # The student's own path, so that an error names the file to mend, where the source came from one.
    experiment = load_experiment(Path(job.source_path) if job.source_path else source, job.source)
    result = train(
        experiment, tensor_data(data), settings, partial, resume=job.resume, progress=reporter.progress
    )
    summary = run_files.write_run_files(job, partial, result, data)
    _publish(partial, folder)
    reporter.send("finished", result=summary)


def _check_device(device: str) -> None:
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(
            "There is no CUDA card that this PyTorch can use: leave DEVICE=cuda out to run on the CPU."
        )


def _prepare_partial(job: RunJob, folder: Path) -> Path:
    partial = partial_folder(folder)
    if job.resume and (partial / JOB_FILE).is_file():
        before = RunJob.from_json((partial / JOB_FILE).read_text(encoding="utf-8"))
        if (before.source, before.settings) != (job.source, job.settings):
            raise UserError(
                f"{partial} was begun with another experiment or other settings: start the run without --resume."
            )
        return partial
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    (partial / "experiment.py").write_text(job.source, encoding="utf-8")
    (partial / JOB_FILE).write_text(job.to_json(), encoding="utf-8")
    return partial


def _publish(partial: Path, folder: Path) -> None:
    (partial / JOB_FILE).unlink()
    old = folder.with_name(folder.name + ".old")
    if old.exists():
        shutil.rmtree(old)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    if old.exists():
        shutil.rmtree(old)


def main() -> int:
    """Run the job on standard input; exit 0, 2 for a user's mistake, 3 for a fault of ours, 130 when interrupted."""
    # Until the run can be resumed there is nothing to save, and a traceback out of an import helps nobody.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    reporter = Reporter(int(sys.argv[1]))
    job = RunJob.from_json(sys.stdin.readline())
    try:
        import torch  # noqa: F401 - a second or two, best spent before Ctrl-C is caught

        signal.signal(signal.SIGINT, signal.default_int_handler)
        execute(job, reporter)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return 130
    except UserError as error:
        reporter.send("user_error", message=str(error))
        return 2
    except OSError as error:
        mistake = from_os_error(error)
        if mistake is None or error.errno == errno.ENOENT:
            raise
        reporter.send("user_error", message=str(mistake))
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:
        import traceback

        traceback.print_exc()
        sys.exit(3)
