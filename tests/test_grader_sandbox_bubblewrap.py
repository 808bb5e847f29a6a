"""What a sandboxed process sees of this machine: nothing but libraries, and itself."""

import json
import socket
import sys
from pathlib import Path

import pytest
from sandbox_marks import needs_sandbox
from sandboxed import (
    engine,  # noqa: F401 - a fixture
    sandboxed,
)

from grader.replay.replayer import Engine
from grader.sandbox.mounts import launcher_python

in_both_engines = pytest.mark.usefixtures("engine")

ROOT = Path(__file__).parents[1]


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
    code = f"""
import json, os
seen = [path for path in {hidden!r} if os.path.lexists(path)]
own = __file__.split('/')[2:3] if '__file__' in globals() else []
beside = [name for name in os.listdir('/tmp') if name not in own]
print(json.dumps([seen, sorted(os.listdir('/etc')), beside, sorted(os.listdir('/input'))]))
"""
    seen, configuration, scratch, inputs = json.loads(sandboxed(code).stdout)
    assert (seen, scratch, inputs) == ([], [], [])
    assert set(configuration) <= {"group", "passwd", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"}


@needs_sandbox
@in_both_engines
def test_of_the_home_folder_only_the_interpreter_is_seen() -> None:
    code = f"import os; print([name for name in os.listdir({str(Path.home())!r})])"
    result = sandboxed(code)
    parts = launcher_python().parts
    home = Path.home().parts
    inside = [parts[len(home)]] if parts[: len(home)] == home else None
    assert result.stdout == (f"{inside}\n".encode() if inside else b"")


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
def test_only_its_own_processes_are_seen() -> None:
    result = sandboxed(
        "import os; print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()))"
    )
    assert result.stdout == b"[1, 2]\n"


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
def test_what_libraries_need_is_there() -> None:
    code = """
import os, tempfile, pwd
assert open('/dev/null', 'w').write('x') and len(open('/dev/urandom', 'rb').read(4)) == 4
assert os.access('/dev/shm', os.W_OK)
tempfile.TemporaryFile().write(b'x')
assert pwd.getpwuid(os.getuid()).pw_dir == '/scratch'
assert os.cpu_count() and open('/sys/devices/system/cpu/online').read()
print('all')
"""
    assert sandboxed(code).stdout == b"all\n"


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


def test_the_tests_run_on_the_interpreter_that_the_sandbox_shows() -> None:
    assert launcher_python().samefile(Path(sys.executable).resolve())


@needs_sandbox
@in_both_engines
def test_what_is_hidden_stays_hidden_where_all_around_it_is_visible() -> None:
    code = f"""
import os
print([os.listdir(os.path.join({str(ROOT)!r}, name)) for name in ('grader', 'solutions', 'tests')])
print(os.path.exists({str(ROOT / "harness" / "trainer.py")!r}))
"""
    assert sandboxed(code, visible=[ROOT]).stdout == b"[[], [], []]\nTrue\n"
