"""What a sandboxed process sees of this machine: nothing but libraries, and itself."""

import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sandbox_marks import needs_sandbox
from sandboxed import (
    SMALL,
    engine,  # noqa: F401 - a fixture
    sandboxed,
)

from grader.course.kit import kit_files
from grader.replay.replayer import Engine, visible_folders
from grader.sandbox import HIDDEN_FROM_STUDENTS, Command, bubblewrap, run_in_sandbox
from grader.sandbox.bubblewrap import hidden_paths
from harness.recipe import ROOT

in_both_engines = pytest.mark.usefixtures("engine")


@needs_sandbox
@in_both_engines
def test_the_environment_is_what_was_given() -> None:
    code = "import os; print(sorted(name for name in os.environ if name != 'LC_CTYPE'), os.environ['ONE'])"
    result = sandboxed(code, environment={"ONE": "1", "MKL_CBWR": "COMPATIBLE"})
    assert result.stdout == b"['MKL_CBWR', 'ONE'] 1\n"


@needs_sandbox
@in_both_engines
def test_nothing_of_the_machine_is_seen_but_what_libraries_need(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of another student")
    hidden = [
        str(path)
        for path in (
            tmp_path, tmp_path / "secret", ROOT / "solutions", ROOT / "grader", ROOT / "tests", ROOT / ".git",
            ROOT / "exercises", Path.home() / ".bashrc", Path.home() / ".ssh", Path("/var"), Path("/run"),
            Path("/boot"), Path("/opt"), Path("/srv"), Path("/mnt"), Path("/etc/hostname"), Path("/etc/shadow"),
            Path("/etc/ssh"), Path("/sys/fs"), Path("/sys/kernel"), Path("/dev/mem"), Path("/dev/kvm"),
            Path("/dev/tty"), Path("/dev/zero"), Path("/dev/pts"),
        )
    ]  # fmt: skip
    # This script lies below /tmp, and a clone may: what leads to them is all that is seen there.
    clone = [path.parts[2] for path in (ROOT, Path(sys.prefix)) if path.parts[1] == "tmp"]
    code = f"""
import json, os
seen = [path for path in {hidden!r} if os.path.lexists(path)]
own = {clone!r} + (__file__.split('/')[2:3] if '__file__' in globals() else [])
beside = [name for name in os.listdir('/tmp') if name not in own]
print(json.dumps([seen, sorted(os.listdir('/etc')), beside, sorted(os.listdir('/input'))]))
"""
    seen, configuration, scratch, inputs = json.loads(sandboxed(code).stdout)
    assert (seen, scratch, inputs) == ([], [], [])
    assert set(configuration) <= {"group", "passwd", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"}


@needs_sandbox
@in_both_engines
def test_a_visible_path_is_seen_and_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "file").write_text("content")
    (tmp_path / "other").write_text("hidden")
    code = f"""
import os
print(open({str(tmp_path / "shown" / "file")!r}).read(), os.listdir({str(tmp_path)!r}))
open({str(tmp_path / "shown" / "new")!r}, 'w')
"""
    result = sandboxed(code, visible=[tmp_path / "shown"])
    assert result.stdout == b"content ['shown']\n"
    assert b"Read-only file system" in result.stderr


@needs_sandbox
def test_it_has_no_rights_and_a_name_that_tells_nothing() -> None:
    code = """
import os, re
status = open('/proc/self/status').read()
wanted = ('CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs', 'Seccomp')
print(*(re.search(rf'^{name}:\\s*(\\S+)', status, re.M)[1].strip('0') or '0' for name in wanted))
print(os.getuid(), os.getgid(), os.getgroups(), os.uname().nodename, os.getsid(0) == os.getpid())
"""
    lines = sandboxed(code).stdout.decode().splitlines()
    assert lines[0] == "0 0 0 0 1 2"
    assert lines[1].startswith("65534 65534 ")
    assert lines[1].endswith(" sandbox True")


@needs_sandbox
def test_the_launcher_cannot_be_looked_into() -> None:
    code = """
import os
for name in ('mem', 'maps', 'environ', 'root/etc', 'cwd/x', *(f'fd/{number}' for number in range(32))):
    try:
        open(f'/proc/1/{name}', 'rb').read(1)
        print('open', name)
    except OSError as error:
        assert error.errno in (1, 2, 13), (name, error)
try:
    os.readlink('/proc/1/fd/1')
except PermissionError:
    print('closed')
print(sorted(int(name) for name in os.listdir('/proc/self/fd'))[:4])
"""
    # Of its own it has the three streams, and the folder that it lists.
    assert sandboxed(code).stdout == b"closed\n[0, 1, 2, 3]\n"


@needs_sandbox
@in_both_engines
def test_there_is_no_network_to_talk_to(engine: Engine) -> None:  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
import socket
try:
    socket.create_connection(('127.0.0.1', {port}), timeout=2)
except OSError as error:
    print(error.strerror)
try:
    print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line))
except FileNotFoundError:
    print('nothing')
"""
        result = sandboxed(code)
    refused, networks = result.stdout.decode().splitlines()
    assert refused == "Address family not supported by protocol"
    # And were there sockets, there would be no network behind them but this one.
    assert networks == ("['lo']" if engine == "fresh" else "nothing")


@needs_sandbox
@in_both_engines
def test_the_folders_of_the_system_have_room_for_nothing() -> None:
    code = """
import os
def attempt(folder):
    try:
        open(f'{folder}/x', 'w'); return [folder]
    except OSError:
        return []
print([name for folder in ('/', '/etc', '/dev', '/input', '/usr', '/proc', '/sys', '/work', '/root')
       for name in attempt(folder)])
"""
    assert sandboxed(code).stdout == b"[]\n"


def test_somebody_without_a_home_has_none_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert ROOT / "solutions" in hidden_paths()


def files_below(folder: Path) -> set[str]:
    """Return the files of the suite below a folder, by their paths in it, without what Python made of them."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths}


def opened_inside(paths: Sequence[Path], visible: Sequence[Path]) -> set[str]:
    """Return which of these files a sandboxed process can open."""
    code = """
import json
opened = []
for path in json.load(open('/input/paths.json')):
    try:
        open(path, 'rb').read(1)
        opened.append(path)
    except OSError:
        pass
print(json.dumps(opened))
"""
    result = sandboxed(
        code, visible=visible, inputs={"paths.json": json.dumps([str(path) for path in paths]).encode()}
    )
    assert result.status == "OK", result
    return set(json.loads(result.stdout))


def test_it_is_what_the_kit_keeps_back() -> None:
    harness = files_below(ROOT / "harness")
    assert {name for name in harness if name.removeprefix("harness/").startswith(HIDDEN_FROM_STUDENTS)} == {
        name for name in harness if name not in kit_files()
    }
    # And each of its lines is about something that is there.
    assert [name for name in HIDDEN_FROM_STUDENTS if not (ROOT / "harness" / name).exists()] == []


@needs_sandbox
def test_a_replay_can_open_what_the_kit_holds_of_the_harness() -> None:
    folders = ("harness", "exercises", "solutions", "grader", "tests", "benchmarks", "docs")
    names = set().union(*(files_below(ROOT / folder) for folder in folders))
    expected = {name for name in names & set(kit_files()) if name.startswith("harness/")}
    expected |= {name for name in names if name.startswith("grader/replay/inside/")}
    opened = opened_inside([ROOT / name for name in sorted(names)], visible_folders())
    assert {Path(path).relative_to(ROOT).as_posix() for path in opened} == expected


@needs_sandbox
@pytest.mark.parametrize("module", ["harness.experiments.digits_mlp", "grader.replay.heldout.make_shapes"])
def test_what_is_kept_back_cannot_be_imported(module: str) -> None:
    code = f"""
import harness.errors
try:
    import {module}
except (ImportError, OSError) as error:
    print('refused')
"""
    command = Command([sys.executable, "-P", "-c", code], limits=SMALL, visible=visible_folders())
    result = run_in_sandbox(command)
    assert result.stdout == b"refused\n", result


def suite_in(folder: Path) -> Path:
    """Make a suite as an instructor may have it, with what Python compiled in it."""
    suite = folder / "suite"
    for name in (
        "harness/trainer.py",
        "harness/checks/data.py",
        "harness/__pycache__/trainer.cpython-311.pyc",
        "harness/experiments/digits_mlp.py",
        "harness/experiments/__pycache__/digits_mlp.cpython-311.pyc",
        "harness/data/embedded/digits.npz",
        "grader/replay/inside/replay.py",
        "grader/score/rubric.toml",
        "exercises/huge_lr/recipe.toml",
        "final-projects/bob.tar.gz",
        "reports/scores.json",
    ):
        path = suite / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return suite


@needs_sandbox
@pytest.mark.parametrize("around", [True, False], ids=["all around it is visible", "the suite itself is"])
def test_a_suite_inside_a_visible_folder_shows_no_more(
    around: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_in(tmp_path)
    monkeypatch.setattr(bubblewrap, "_ROOT", suite)
    visible = [suite / "harness", suite / "grader" / "replay" / "inside", tmp_path if around else suite]
    files = sorted(path for path in suite.rglob("*") if path.is_file())
    opened = {path.removeprefix(f"{suite}/") for path in opened_inside(files, visible)}
    expected = {
        "harness/trainer.py",
        "harness/checks/data.py",
        "harness/__pycache__/trainer.cpython-311.pyc",
        "harness/data/embedded/digits.npz",
        "grader/replay/inside/replay.py",
    }
    # Who shows the whole suite shows what no list can know.
    assert opened == expected | (set() if around else {"final-projects/bob.tar.gz", "reports/scores.json"})
