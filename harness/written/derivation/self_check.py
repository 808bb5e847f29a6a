"""What `make check` says of a derivation: a process of its own calls it, and holds gradients against its loss."""

import json
import os
import subprocess
import sys
from pathlib import Path

from harness.canonical_setup import run_environment
from harness.submission.check_item import CheckItem, failed
from harness.written.file_exercise import Derivation


def derivation_items(exercise: Derivation, answer: Path) -> list[CheckItem]:
    """Judge an answer by what can be judged without knowing the gradients; nothing of it runs in this process."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as results:
        try:
            # What the answer prints goes to standard error: standard output is for what the command says.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "harness.written.derivation.self_check_child", str(writing)],
                env=run_environment("portable"),
                stdin=subprocess.PIPE,
                stdout=2,
                pass_fds=(writing,),
            )
        finally:
            os.close(writing)
        try:
            job = {"problem": exercise.problem, "source": answer.read_text(encoding="utf-8")}
            process.communicate(json.dumps({**job, "file": str(answer)}).encode())
        except BaseException:
            process.kill()
            process.wait()
            raise
        told = results.read()
    try:
        return [CheckItem(**item) for item in json.loads(told)]
    except ValueError:
        message = (
            f"{answer} ended the whole process, with status {process.returncode}: take out what exits there."
        )
        return [failed("answer: runs", message)]
