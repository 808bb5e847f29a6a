"""Random edits that the grammar calls plain, run in the sandbox: they do only what training code does.

`make test` tries some hundred programs, `make fuzz` a hundred thousand.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.sandbox_marks import needs_sandbox
from hypothesis import settings
from plain_programs import BASE, Programs, forbidden, inserted

from grader.replay.inside import INSIDE
from grader.replay.replayer import Sandbox, open_sandbox, replay_environment, visible_folders
from grader.sandbox import Interpreter, Limits, SandboxCommand
from grader.syntax.plain_edit import plain_edit

HERE = Path(__file__).parent / "plain_programs" / "inside"
ORDINARY = settings.default or settings()
COUNT = ORDINARY.max_examples
BATCHES = 3 if ORDINARY.derandomize else 10
# The number of programs in one run of the sandbox.
AT_ONCE = 500


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with open_sandbox("warm", jobs=1) as opened:
        yield opened


def events_of(programs: list[str], sandbox: Sandbox) -> list[list[str]]:
    """Run programs in one sandbox, and return the other effects of each besides training. All must finish."""
    words = (sys.executable, "-P")
    interpreter = Interpreter(words, replay_environment(), (*visible_folders(), HERE), INSIDE / "preload.py")
    limits = Limits(seconds=600, wall_seconds=3000)
    inputs = {"programs.json": json.dumps(programs).encode()}
    result = sandbox(SandboxCommand(HERE / "run_programs.py", interpreter, inputs, limits), None)
    assert result.status == "OK", (result.message, result.stderr[-3000:])
    return [item["events"] for item in json.loads(result.files["found.json"])]


@needs_sandbox
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_plain_program_does_nothing_but_training(batch: int, sandbox: Sandbox) -> None:
    seed = f"{batch}" if ORDINARY.derandomize else f"{batch} {os.urandom(8).hex()}"
    programs = Programs(seed)
    plain = [source for source in (programs.next() for _ in range(COUNT)) if not plain_edit.__wrapped__(BASE, source)]
    assert len(plain) >= 0.1 * COUNT, f"seed {seed!r}: only {len(plain)} of {COUNT} programs are plain"
    holes = [(source, found) for source in plain if (found := forbidden(source))]
    for start in range(0, len(plain), AT_ONCE):
        part = plain[start : start + AT_ONCE]
        holes += [(source, found) for source, found in zip(part, events_of(part, sandbox), strict=True) if found]
    assert not holes, f"seed {seed!r}\n" + "\n".join(f"{found}\n{inserted(source)}" for source, found in holes[:5])


@needs_sandbox
@pytest.mark.parametrize(("line", "event"), [
    ("open('/tmp/seen', 'w').close()", "open"), ("eval('1')", "builtin eval"), ("import os", "import os"),
    ("model.calls = 1", "left in model"), ("optimizer.param_groups[0]['calls'] = 1", "left in optimizer"),
    ("TABLE['a'] = 2", "left in the module TABLE"), ("nn.ReLU.calls = 1", "left outside: ReLU.calls"),
    ("train_step.calls = 1", "left in the module train_step"), ("torch.set_num_threads(2)", "left outside: flags"),
    ("x = train_step.__code__", "object.__getattr__"), ("model.register_forward_hook(print)", "left in model"),
    ("torch.set_grad_enabled(False)", "left outside: flags"),
])  # fmt: skip
def test_the_sandbox_notes_what_a_program_does(line: str, event: str, sandbox: Sandbox) -> None:
    (step,) = [line for line in BASE.split("\n") if line == "    optimizer.step()"]
    source = BASE.replace(step, f"{step}\n    {line}")
    assert plain_edit(BASE, source) != ()
    quiet, found = events_of([BASE, source], sandbox)
    assert quiet == []
    assert any(item.startswith(event) for item in found), found
