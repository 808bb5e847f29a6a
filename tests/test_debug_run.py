"""`harness debug`: a run in one process, in which pdb and the debuggers of editors stop."""

import contextlib
import json
import os
import pty
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import HARNESS, mistake, succeed

from harness.student.debug_run import stop_at_start

EXPERIMENT = "work/huge_lr/experiment.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the workspace of huge_lr. Its broken run has one epoch."""
    place = tmp_path_factory.mktemp("student")
    succeed("exercise", "huge_lr", "--epochs", "1", cwd=place)
    return place


def first_line_of_step(folder: Path) -> int:
    lines = (folder / EXPERIMENT).read_text().splitlines()
    return lines.index("    optimizer.zero_grad()") + 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('def train_step(x):\n    """é."""  # 1\n    for y in x:\n        pass\n', '    """é."""; breakpoint()  # 1'),
        ("import math\n\n\ndef train_step(\n    x,\n):\n    return x\n", "    breakpoint(); return x"),
        ("def train_step(x): return x\n", "def train_step(x): breakpoint(); return x"),
        ('def train_step(x):\n    """One.\n\n    Two."""\n    return x\n', '    Two."""; breakpoint()'),
    ],
)  # fmt: skip
def test_the_step_begins_with_a_stop_and_no_line_moves(before: str, after: str) -> None:
    stopped = stop_at_start(before)
    compile(stopped, "experiment.py", "exec")
    old, new = before.split("\n"), stopped.split("\n")
    assert len(old) == len(new)
    assert [line for line in new if line not in old] == [after]


@pytest.mark.parametrize(
    "source", ["def train_step(x:\n", "def evaluate(x):\n    return x\n", "def train_step(x):\n    with x: pass\n"]
)
def test_a_source_without_room_for_a_stop_stays_as_it_is(source: str) -> None:
    assert stop_at_start(source) == source


@pytest.mark.slow
def test_pdb_stops_in_the_step_and_the_run_leaves_nothing(folder: Path) -> None:
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*HARNESS, "debug", "huge_lr"], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"p tuple(inputs.shape)\ncontinue\nquit\n")
    output = b""
    while True:
        try:
            output += os.read(ours, 1000)
        except OSError:  # the process has ended
            break
    os.close(ours)
    assert process.wait() == 2
    stops = re.findall(rb"experiment\.py\((\d+)\)train_step\(\)", output)
    assert stops == [str(first_line_of_step(folder)).encode()] * 2
    assert re.search(rb"\(\d+, 1, 28, 28\)", output)
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before


class Editor:
    """The side of an editor in the Debug Adapter Protocol, as far as this test needs it."""

    def __init__(self, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
            self._file = connection.makefile("rwb")  # which keeps the connection open
        self._number = 0

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def ask(self, command: str, **arguments: Any) -> int:
        self._number += 1
        request = {"seq": self._number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._file.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._file.flush()
        return self._number

    def wait_for(self, **wanted: Any) -> dict[str, Any]:
        while True:
            size = 0
            while line := self._file.readline().strip():
                if line.startswith(b"Content-Length:"):
                    size = int(line.split(b":")[1])
            assert size, "the debugger closed the connection"
            message: dict[str, Any] = json.loads(self._file.read(size))
            if wanted.items() <= message.items():
                return message


@pytest.mark.slow
def test_the_debugger_of_an_editor_stops_in_the_step(folder: Path) -> None:
    pytest.importorskip("debugpy")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("debugpy", "--listen", f"127.0.0.1:{port}", "--wait-for-client", "-m", "harness", "debug", "huge_lr")
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=folder, stdin=subprocess.DEVNULL)
    try:
        with contextlib.closing(connect(port, process)) as editor:
            editor.ask("initialize", adapterID="python", clientID="test")
            editor.wait_for(type="response", command="initialize")
            editor.ask("attach", justMyCode=True)
            editor.wait_for(event="initialized")
            editor.ask("configurationDone")
            thread = editor.wait_for(event="stopped")["body"]["threadId"]
            asked = editor.ask("stackTrace", threadId=thread)
            frame = editor.wait_for(type="response", request_seq=asked)["body"]["stackFrames"][0]
            asked = editor.ask("disconnect", terminateDebuggee=True)
            editor.wait_for(type="response", request_seq=asked)
        assert (frame["name"], frame["source"]["path"]) == ("train_step", str((folder / EXPERIMENT).resolve()))
        assert frame["line"] in (first_line_of_step(folder) - 1, first_line_of_step(folder))
    finally:
        process.kill()
        process.wait()


def connect(port: int, process: "subprocess.Popen[bytes]") -> Editor:
    """Wait until the debugger listens, and connect."""
    while process.poll() is None:
        try:
            return Editor(port)
        except ConnectionRefusedError:
            continue
    raise AssertionError("the debugger did not start")


def test_without_a_terminal_or_for_a_script_the_message_says_how(folder: Path) -> None:
    assert "run it in a terminal, or start it with the debugger" in words_of(mistake("debug", "huge_lr", cwd=folder))
    (folder / EXPERIMENT).write_text('def main():\n    pass\n\n\nif __name__ == "__main__":\n    main()\n')
    assert "python -m pdb experiment.py" in words_of(mistake("debug", "huge_lr", cwd=folder))


def words_of(text: str) -> str:
    """Return a wrapped message as one line."""
    return " ".join(text.split())
