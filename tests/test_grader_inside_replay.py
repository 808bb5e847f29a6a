"""The script that makes a replay, in the real sandbox."""

import json
import sys
from dataclasses import asdict

from sandbox_marks import needs_sandbox

from grader.replay.inside import FOLDER
from grader.replay.replayer import visible_folders
from grader.replay.request import RUN_LIMITS
from grader.sandbox import SandboxResult, run_in_sandbox
from harness.canonical_setup import run_environment
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

RECIPE = load_recipe("huge_lr")


def replayed(source: str) -> SandboxResult:
    settings = RunSettings(seed=42, dataset="digits", epochs=1)
    job = {
        "settings": asdict(settings),
        "checks": ["learning_rate"],
        "runs": [{"name": "run", "source": source}],
        "platform": False,
    }
    return run_in_sandbox(
        [sys.executable, "-P", str(FOLDER / "replay.py")],
        inputs={"job.json": json.dumps(job).encode()},
        environment=run_environment("portable", base={"PATH": "/usr/bin:/bin"}),
        limits=RUN_LIMITS,
        visible=visible_folders(),
    )


@needs_sandbox
def test_a_replay_makes_the_checks_of_its_job() -> None:
    result = replayed(RECIPE.healthy_source())
    assert result.status == "OK", result
    (found,) = json.loads(result.files["run/checks.json"])
    assert (found["check"], found["outcome"]) == ("learning_rate", "usual")
    assert found["figures"]["largest rate"] == 0.1


@needs_sandbox
def test_an_error_shows_the_line_that_raised() -> None:
    # A form feed ends no line of a program.
    source = "import torch\n# a page \x0c\r\n\ndef first():\n    raise ValueError('no')  # here\nfirst()\n"
    result = replayed(source)
    assert (result.status, result.exit_code) == ("RE", 2)
    assert result.files["error.txt"].decode() == (
        "experiment.py raised ValueError: no when it was loaded\n"
        "  line 6, in <module>: first()\n"
        "  line 5, in first: raise ValueError('no')  # here\n"
        "Fix that line."
    )
