"""Run a script under watch, in a process of its own: `python -m trainwreck.child RESULT STEPS script.py arguments`.

The process ends after the watched updates, without the end of the script, and writes its findings to RESULT as JSON.
Files that the script writes go to the folder of RESULT.
"""

import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from trainwreck.checks import ALL
from trainwreck.guard import redirect_writes
from trainwreck.hooks import Hooks
from trainwreck.state import Watch
from trainwreck.trial import send_answer


def main(arguments: list[str]) -> None:
    """Watch the script and end the process. Exit status 0 says that RESULT is complete."""
    result, steps, script, *rest = arguments
    file = os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    redirect_writes(Path(result).parent)
    watch = Watch(ALL, int(steps))

    def finish(failure: str = "") -> None:
        """Make the trials, write the findings, and end without running the script's exit handlers.

        Return only in a child that makes a trial.
        """
        if watch.trial is not None:  # a child whose script has ended
            send_answer({"losses": watch.trial.losses})
        watch.end()
        if watch.is_over and not watch.run_trials():
            return
        hooks.remove()
        found: dict[str, Any] = {
            "findings": [finding.to_json() for finding in watch.findings],
            "errors": watch.errors,
            "steps": watch.step,
            "failure": failure,
        }
        os.write(file, json.dumps(found).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    hooks = Hooks(watch, on_update=lambda: finish() if watch.is_over else None)
    sys.argv = [script, *rest]
    sys.path[0] = str(Path(script).resolve().parent)
    hooks.install()
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        finish(f"the script exited with status {end.code}" if end.code else "")
    except BaseException:  # also KeyboardInterrupt: the parent decides
        finish(traceback.format_exc())
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
