"""`harness serve`: a page for this machine only, which does what the commands do."""

import json
import os
import re
import signal
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import ROOT, is_running, mistake, start, succeed, wait_until
from helpers.made_up_runs import BROKEN, FIXED, make_workspace
from helpers.mini_experiments import MINI, edited
from helpers.page_reader import Page
from helpers.serving import ask, ask_port, practising, wait_for_job

from harness.cli import cli
from harness.practice.case import render_markdown
from harness.practice.server import PracticeServer
from harness.recipes.catalogue import SUITE
from harness.recipes.mysteries import level_of_hidden
from harness.workspace.progress import progress_of

CASE = "/case/huge_lr"
# Its learning rate is as large as in the broken experiment, so it keeps the symptom.
SMALL = edited(MINI, ("nn.Linear(36, 16)", "nn.Linear(784, 16)"), ("EPOCHS = 3", "EPOCHS = 1"), ("lr=0.05", "lr=10.0"))
# Starts a child process, writes the number of both into a file, and does not end.
SLEEPS = """\
import os, subprocess, time
child = subprocess.Popen(["sleep", "600"])
open({path!r}, "w").write(f"{{os.getpid()}} {{child.pid}} ")
time.sleep(600)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PracticeServer]:
    make_workspace(tmp_path / "work")
    with practising(tmp_path / "work") as server:
        yield server


def folder_of(server: PracticeServer) -> Path:
    return server.work / "huge_lr"


def test_only_requests_of_our_page_are_answered(server: PracticeServer) -> None:
    port, hint = server.server_port, f"{CASE}/hint"
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, CASE)[0] == 200
    refused: list[tuple[str, object, dict[str, str]]] = [
        ("/", None, {"Cookie": ""}),
        ("/?token=wrong", None, {}),
        (CASE, None, {"Cookie": ""}),
        (CASE, None, {"Cookie": f"trainwreck-{port}=wrong"}),
        (f"{CASE}?token={server.token}", None, {"Cookie": ""}),
        (CASE, None, {"Host": "evil.example"}),
        (CASE, None, {"Host": f"127.0.0.1.evil.example:{port}"}),
        (hint, {}, {"Cookie": ""}),
        (hint, {}, {"Host": "evil.example"}),
        (hint, {}, {"Origin": "http://evil.example"}),
        (hint, {}, {"Origin": f"http://127.0.0.1:{port + 1}"}),
        (hint, {}, {"Origin": "null"}),
        (hint, {}, {"Sec-Fetch-Site": "cross-site"}),
        (hint, {}, {"Sec-Fetch-Site": "same-site"}),
    ]
    for path, given, headers in refused:
        status, said = ask(server, path, given, **headers)
        assert (status, said) == (403, "The address is wrong: open the address that harness serve printed."), headers
    assert progress_of(folder_of(server)).hints == 0
    assert ask(server, hint, {}, Origin=f"http://127.0.0.1:{port}", **{"Sec-Fetch-Site": "same-origin"})[0] == 200


def test_the_page_sets_a_strict_cookie_and_loads_nothing(server: PracticeServer) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", f"/?token={server.token}")
    answer = connection.getresponse()
    text = answer.read().decode()
    cookie = answer.headers["Set-Cookie"]
    connection.close()
    assert cookie == f"trainwreck-{server.server_port}={server.token}; HttpOnly; SameSite=Strict; Path=/"
    assert server.token not in text
    page = Page(text)
    assert "default-src 'none'" in page.policy and "connect-src 'self'" in page.policy
    assert not [tag for tag in ("link", "img", "iframe", "object", "embed") if page.all(tag)]
    assert page.all("script") == [{}]
    assert not re.search(r"@import|url\(", "".join(page.code["style"]))
    assert len(set(page.ids)) == len(page.ids)


@pytest.mark.parametrize(
    "path",
    [
        "/case/..%2f..%2fetc",
        "/case/%2fetc%2fpasswd",
        "/case/..",
        "/case/huge_lr%2f..%2fhuge_lr",
        "/case/huge_lr/run/..%2f..%2f..",
        "/case/huge_lr/run/attempts",
        "/case/huge_lr/run/broken/experiment.py",
        "/../../etc/passwd",
        "/queue/-1",
    ],
)
def test_no_path_leads_out_of_the_workspaces(server: PracticeServer, path: str) -> None:
    status, said = ask(server, path)
    assert status in (404, 409)
    assert said is None or "There is no exercise" in said["error"]


def test_broken_requests_get_an_error(server: PracticeServer) -> None:
    assert ask(server, f"{CASE}/save", "x" * 3_000_000)[0] == 413
    for body in ("[]", "{", "[" * 100_000, "\0"):
        assert ask(server, f"{CASE}/save", body)[1]["error"].startswith("Error: The request is not a JSON object")
    seen = ask(server, CASE)[1]["experiment"]["seen"]
    said = ask(server, f"{CASE}/save", {"text": "a\n\ud800", "seen": seen})[1]["error"]
    assert said == "Error: Line 2 contains half of a character, which UTF-8 cannot store: remove it."
    assert ask(server, f"{CASE}/hint")[0] == 404, "a hint needs a POST"
    assert ask(server, f"{CASE}/nothing", {})[0] == 404


def test_an_edit_is_saved_and_replaces_no_other_edit(server: PracticeServer) -> None:
    path = folder_of(server) / "experiment.py"
    seen = ask(server, CASE)[1]["experiment"]["seen"]
    status, found = ask(server, f"{CASE}/save", {"text": "x = 1\r\n", "seen": seen})
    assert (status, path.read_bytes(), found["experiment"]["text"]) == (200, b"x = 1\n", "x = 1\n")
    path.write_text("mine = 2\n")
    status, found = ask(server, f"{CASE}/save", {"text": "y = 3\n", "seen": seen})
    assert (status, path.read_text()) == (409, "mine = 2\n")
    assert "has changed on the disk since you loaded it, so it was not saved" in found["error"]
    seen = ask(server, CASE)[1]["experiment"]["seen"]
    assert ask(server, f"{CASE}/save", {"text": "y = 3\n", "seen": seen})[0] == 200
    assert path.read_text() == "y = 3\n"
    assert {one.name for one in path.parent.iterdir()} == {
        "experiment.py", "report.md", "PROMPT.md", "workspace.json", "runs",
    }  # fmt: skip


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_explained(server: PracticeServer, content: bytes | None) -> None:
    path = folder_of(server) / "experiment.py"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    found = ask(server, CASE)[1]["experiment"]
    assert ("put the file back" if content is None else "is not UTF-8 text: save it as UTF-8") in found["problem"]
    assert ask(server, f"{CASE}/save", {"text": FIXED, "seen": "older"})[0] == 409
    assert (path.read_bytes() if path.exists() else None) == content


def test_hints_come_one_at_a_time_and_are_noted(server: PracticeServer) -> None:
    assert ask(server, CASE)[1]["hints"]["given"] == []
    for count in (1, 2, 3, 3):
        assert ask(server, f"{CASE}/hint", {})[1]["hints"]["given"] == [
            render_markdown(hint) for hint in SUITE.find("huge_lr").hints[:count]
        ]
        assert progress_of(folder_of(server)).hints == count


def test_the_explanation_needs_a_yes_and_is_noted(server: PracticeServer) -> None:
    status, found = ask(server, f"{CASE}/reveal", {})
    assert (status, found["question"]) == (
        200,
        "You have not handed in huge_lr. Show its solution? Your submission will say that you saw it.",
    )
    assert ask(server, CASE)[1]["explanation"] == []
    assert not progress_of(folder_of(server)).revealed
    parts = ask(server, f"{CASE}/reveal", {"yes": True})[1]["explanation"]
    assert parts[0]["heading"] == f"The cause: {SUITE.find('huge_lr').cause}"
    assert "How to find it" in [part["heading"] for part in parts]
    assert "+    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)" in [
        line for part in parts for line in part["edit"]
    ]
    assert progress_of(folder_of(server)).revealed
    assert ask(server, CASE)[1]["explanation"] == parts


def test_the_queue_has_neutral_names_and_what_is_begun(server: PracticeServer) -> None:
    queue = ask(server, "/queue/1")[1]
    names = [one["name"] for one in queue["items"]]
    assert names[0] == "huge_lr" and len(names) == 2
    assert all(re.fullmatch(r"case-\d{5}", name) for name in names[1:])
    for name in names[1:]:
        text = json.dumps(ask(server, f"/case/{name}")[1])
        causes = SUITE.find(name).causes
        assert not [cause for cause in causes if cause in text]
    other = ask(server, "/queue/3")[1]
    assert [one["name"] for one in other["others"]] == ["huge_lr"]
    assert [level_of_hidden(one["name"]) for one in other["items"]] == [3]


def test_the_page_of_a_run_gets_no_access_to_ours(server: PracticeServer) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    cookie = f"trainwreck-{server.server_port}={server.token}"
    connection.request("GET", f"{CASE}/run/fixed", headers={"Cookie": cookie})
    answer = connection.getresponse()
    assert answer.read() == b"<!doctype html>"
    assert "sandbox allow-scripts" in answer.headers["Content-Security-Policy"]
    assert "allow-same-origin" not in answer.headers["Content-Security-Policy"]
    connection.close()


def test_an_error_has_the_words_of_the_terminal(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "work")
    (workspace.run_folder("broken") / "result.json").unlink()
    terminal = mistake("verify", "huge_lr", "--work", tmp_path / "work", cwd=Path.cwd())
    with practising(tmp_path / "work") as server:
        assert ask(server, f"{CASE}/verify", {})[0] == 200
        job = wait_for_job(server)
    assert (job["status"], job["says"]) == ("failed", f"Error: {terminal}")


def test_a_miniature_is_saved_verified_and_listed(server: PracticeServer) -> None:
    broken = folder_of(server) / "runs/broken/experiment.py"
    assert broken.read_text() == BROKEN
    seen = ask(server, CASE)[1]["experiment"]["seen"]
    source = SMALL + "\n\nprint('hello from the experiment')\n"
    assert ask(server, f"{CASE}/save", {"text": source, "seen": seen})[0] == 200
    assert ask(server, f"{CASE}/verify", {})[1]["job"]["status"] == "running"
    job = wait_for_job(server)
    assert (job["status"], job["result"]["fixed"], job["result"]["attempt"]) == ("finished", False, 1), job
    assert "hello from the experiment" in job["output"]
    found = ask(server, CASE)[1]
    assert (found["last"], found["fixed"], found["current"], found["state"]) == (1, False, True, "tried")
    assert found["verdict"] == job["result"]["says"] == "Not fixed yet."
    assert [one for one in found["criteria"] if not one["reached"]]
    assert [one["number"] for one in found["history"]["attempts"]] == [1]
    assert "+print('hello from the experiment')" in found["history"]["attempts"][0]["edit"]
    assert found["metrics"]["columns"] == ["broken", "your run"]
    curves = ask(server, f"{CASE}/curves")[1]
    assert curves.keys() == {"broken", "fixed"}
    assert len(curves["fixed"]["steps"]["loss"]) == len(curves["fixed"]["steps"]["step"]) > 10


@pytest.mark.slow
def test_a_check_shows_the_lines_of_the_terminal(server: PracticeServer) -> None:
    (folder_of(server) / "experiment.py").write_text(SMALL)
    terminal = succeed("first-loss", "huge_lr", "--work", server.work, cwd=Path.cwd())
    ask(server, f"{CASE}/triage", {"check": "first-loss"})
    assert wait_for_job(server)["status"] == "finished"
    triage = ask(server, CASE)[1]["triage"]
    assert triage["current"]
    lines = [line.strip() for line, _ in triage["screen"]]
    assert "Does the first loss equal the loss of a guess (ln C for C classes)?" in lines
    assert [line for line in lines if line and line not in terminal] == []
    (folder_of(server) / "experiment.py").write_text(SMALL + "\n")
    assert not ask(server, CASE)[1]["triage"]["current"]


def start_sleeping(path: Path, note: Path, ask_for: Any) -> list[int]:
    """Run an experiment that sleeps. Return the number of its process and of its child."""
    path.write_text(SLEEPS.format(path=str(note)))
    status, found = ask_for(f"{CASE}/verify", {})
    assert status == 200, found
    wait_until(lambda: note.exists() and note.read_text().endswith(" "), "the experiment", 300)
    return [int(word) for word in note.read_text().split()]


def test_one_run_at_a_time_and_stop_ends_it_with_its_children(server: PracticeServer, tmp_path: Path) -> None:
    def ask_for(path: str, given: object = None) -> tuple[int, Any]:
        return ask(server, path, given)

    processes = start_sleeping(folder_of(server) / "experiment.py", tmp_path / "note", ask_for)
    status, found = ask(server, f"{CASE}/triage", {})
    assert (status, found["error"]) == (
        409,
        "Error: Only one run at a time: verify of huge_lr is in progress. Wait until it ends, or stop it.",
    )
    status, found = ask(server, "/stop", {})
    job = found["job"]
    assert (job["status"], job["says"].partition(":")[0]) == ("failed", "Stopped before the first step")
    wait_until(lambda: not any(map(is_running, processes)), "the end of the run", 300)
    assert ask(server, "/stop", {})[0] == 200, "there is nothing to stop, and no error"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_command_ends_the_run(tmp_path: Path, how: signal.Signals) -> None:
    workspace = make_workspace(tmp_path / "work")
    with start("serve", "--no-browser", cwd=tmp_path) as command:
        assert command.stdout is not None
        try:
            line = command.stdout.readline()
            found = re.fullmatch(r"Practise at http://127\.0\.0\.1:(\d+)/\?token=(\S+)\n", line)
            assert found
            port, token = int(found[1]), found[2]
            processes = start_sleeping(
                workspace.experiment, tmp_path / "note", lambda path, given: ask_port(port, token, path, given)
            )
            command.send_signal(how)
            said, errors = command.communicate(timeout=300)
        finally:
            command.kill()
    run = processes[:1] if how == signal.SIGKILL else processes  # no program can end children after SIGKILL
    wait_until(lambda: not any(map(is_running, run)), "the end of the run", 300)
    for process in filter(is_running, processes):
        os.kill(process, signal.SIGKILL)
    assert errors == ""
    if how != signal.SIGKILL:
        assert command.returncode == 0
        assert said.endswith("Your work is in work.\n")


def test_a_port_in_use_is_named(server: PracticeServer, tmp_path: Path) -> None:
    said = mistake("serve", "--port", str(server.server_port), cwd=tmp_path)
    assert said == f"Port {server.server_port} cannot be used (Address already in use): choose another one with --port."


def test_the_containers_start_the_page() -> None:
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    words = json.loads(docker.rpartition("\nCMD ")[2])
    assert words[0] == "harness" and words[1] in cli.commands
    options = {name for option in cli.commands["serve"].params for name in option.opts}
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    program, verb, *rest = container["postAttachCommand"].split()
    assert (program, verb) == ("harness", "serve")
    assert {word for word in [*words[2:], *rest] if word.startswith("--")} <= options
    assert [str(port) for port in container["forwardPorts"]] == rest[rest.index("--port") + 1 :]
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert "/.venv/.installed" in docker and container["remoteUser"] in docker
