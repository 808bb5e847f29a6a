"""What a user does with findings: select, ignore, suppress, compare with a baseline, and read in other programs."""

import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from torch import nn

import trainwreck
from trainwreck.baseline import read_baseline, to_baseline
from trainwreck.catalogue import CHECKS, OUTCOMES
from trainwreck.command import main
from trainwreck.finding import DEFAULT_STEPS, Finding, Report
from trainwreck.formats import render
from trainwreck.page import loss_curve, page
from trainwreck.places import Place
from trainwreck.runs import watch_script
from trainwreck.selection import choose
from trainwreck.settings import read_settings
from trainwreck.show import CONSEQUENCE, report_lines
from trainwreck.terminal import print_lines, width_of
from trainwreck.usage import UsageError

# Three findings: gradients/stale at line 10, ownership/not-reached without a line, modes/... at line 8.
SCRIPT = """\
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1)).eval()
unused = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD([*model.parameters()], lr=1e-2)
for step in range(20):
    loss = model(torch.randn(16, 5)).square().mean()
    loss.backward()
    optimizer.step()
"""
QUICK = ("--select", "gradients,modes", "--steps", "4")  # checks without trials


def finding(
    name: str = "gradients/stale", file: str = "train.py", line: int = 3, text: str = "4 of 4", step: int = 2
) -> Finding:
    check, outcome = name.split("/")
    return Finding(check, outcome, OUTCOMES[name].level, text, Place(file, line, "main"), step)


def report(*findings: Finding, script: str = "train.py", **fields: object) -> Report:
    return Report(script, findings, **{"errors": {}, "steps": 12, **fields})  # type: ignore[arg-type]


def kept(source: str, folder: Path, *findings: Finding) -> list[str]:
    """Return the names of the findings that the comments of a script leave."""
    script = folder / "train.py"
    script.write_text(source, encoding="utf-8")
    placed = [finding(one.name, str(script) if one.place.line else "in words", one.place.line) for one in findings]
    return [one.name for one in choose().keep(placed, str(script)).findings]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainwreck", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


# --- names


@pytest.mark.parametrize(
    ("select", "ignore", "message"),
    [
        ("mode", "", "select: there is no check mode; did you mean modes?\nThe checks are gradients,"),
        ("stale", "", "select: there is no check stale; stale is an outcome of gradients\n"),
        (["modes", "Shape"], "", "no check Shape; did you mean shapes?"),
        ("", "stael", "ignore: there is no check or outcome stael; did you mean stale?"),
        ("", "modes/stale", "there is no outcome modes/stale\nThe outcomes of modes are evaluates-in-training-mode,"),
        ("", "mode/trains-in-eval-mode", "did you mean modes/trains-in-eval-mode?"),
        ("modes", "modes", "no check is left"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(select: str | list[str], ignore: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        choose(select, ignore)


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ("gradients", {"modes/trains-in-eval-mode"}),
        ("gradients/stale", {"gradients/empty", "modes/trains-in-eval-mode"}),
        ("stale, empty", {"modes/trains-in-eval-mode"}),
        (["modes", "empty"], {"gradients/stale"}),
    ],
)
def test_ignored_findings_are_dropped_and_not_counted(ignore: str | list[str], left: set[str]) -> None:
    findings = [finding("gradients/stale"), finding("gradients/empty"), finding("modes/trains-in-eval-mode")]
    found = choose(ignore=ignore).keep(findings, "train.py")
    assert {one.name for one in found.findings} == left
    assert found.suppressed == 0


def test_checks_that_cannot_be_reported_do_not_run() -> None:
    own = [f"gradients/{name}" for name in CHECKS["gradients"].outcomes]
    assert [check.name for check in choose("gradients,modes", own).checks] == ["modes"]
    assert [check.name for check in choose("modes").checks] == ["modes"]
    assert len(choose(ignore="modes, stale").checks) == len(CHECKS) - 1


# --- several lines

TWICE = """\
import torch
import torch.nn.functional as F

x, y = torch.randn(40, 8), torch.zeros(40, dtype=torch.long)
net = torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.Softmax(1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(24):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)  # trainwreck: ignore[normalized-twice]
    loss = loss + F.cross_entropy(net(x), y)
    F.mse_loss(torch.zeros(3), torch.zeros(3, 1))
    loss.backward()
    optimizer.step()
"""


def test_a_comment_at_one_line_hides_no_fault_of_another(tmp_path: Path) -> None:
    Path(tmp_path, "train.py").write_text(TWICE, encoding="utf-8")
    done = run(tmp_path, "--select", "loss-form", "--steps", "30", "train.py")
    assert (done.returncode, "train.py:9" in done.stdout) == (1, False)
    assert "Where: train.py:10 (" in done.stdout
    assert done.stdout.endswith("Watched 24 updates: 1 alarm, 1 suppressed.\n")
    assert "try --steps 12" in done.stderr  # no trial can follow update 30
    # torch warns of the shapes in the name of its caller.
    assert ("train.py:11: UserWarning" in done.stderr, "hooks.py" in done.stderr) == (True, False)


def test_one_paragraph_names_all_lines_of_an_outcome() -> None:
    found = report(finding(line=3), finding(line=5, text="2 of 4"), finding("modes/trains-in-eval-mode"))
    text = "\n".join(report_lines(found))
    assert text.count("alarm: gradients/stale") == 1
    assert "  Also: train.py:5 in main(): 2 of 4.\n" in text
    assert text.endswith("Watched 12 updates: 2 alarms.")
    assert page(found).count("<article") == 2


@pytest.mark.parametrize("others", [[], ["modes/trains-in-eval-mode"], ["inputs/large"]])
def test_a_symptom_beside_an_alarm_may_be_its_consequence(others: list[str]) -> None:
    found = report(*(finding(name) for name in [*others, "overfit/stalls"]))
    has_alarm = others == ["modes/trains-in-eval-mode"]
    assert (CONSEQUENCE in "\n".join(report_lines(found))) == (CONSEQUENCE in page(found)) == has_alarm


# --- comments


@pytest.mark.parametrize(
    ("line", "suppresses"),
    [
        ("step()  # trainwreck: ignore", True),
        ("step()  #trainwreck:ignore", True),
        ("step()  # trainwreck: ignore[stale]", True),
        ("step()  # noqa: E501  # trainwreck: ignore[ modes , gradients/stale ] as the paper does", True),
        ("step()  # trainwreck: ignore[gradients]", True),
        ("step()  # trainwreck: ignore[modes]", False),
        ("step()  # trainwreck: ignore[]", False),
        ("step()  # trainwreck: ignore[stale", False),
        ("step()  # trainwreck: ignored", False),
        ("step('# trainwreck: ignore')", False),
        ("step()\n# trainwreck: ignore", False),
        ("step()  # trainwreck: ignore-file", False),
    ],
)
def test_a_comment_suppresses_the_findings_of_its_line(line: str, suppresses: bool, tmp_path: Path) -> None:
    left = kept(f"import torch\n\n{line}\n", tmp_path, finding("gradients/stale", line=3))
    assert left == ([] if suppresses else ["gradients/stale"])


@pytest.mark.parametrize(
    ("head", "left"),
    [
        ("# trainwreck: ignore-file\nimport torch", []),
        ("#!/usr/bin/env python\n# trainwreck: ignore-file[foreign, stale]\nimport torch", []),
        ('"""Train."""\n\n# trainwreck: ignore-file[ownership]\nimport torch', ["gradients/stale"]),
        ("import torch\n# trainwreck: ignore-file", ["gradients/stale", "ownership/foreign"]),
        ("# trainwreck: ignore\nimport torch", ["gradients/stale", "ownership/foreign"]),
    ],
)
def test_a_comment_at_the_top_suppresses_findings_without_a_line(head: str, left: list[str], tmp_path: Path) -> None:
    findings = finding("gradients/stale", line=5), finding("ownership/foreign", line=0)
    assert kept(f"{head}\n\n\n\nstep()\n", tmp_path, *findings) == left


def test_comments_of_a_script_that_is_not_utf_8_are_read(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes("# coding: latin-1\nname = 'café'\nstep()  # trainwreck: ignore\n".encode("latin-1"))
    assert choose().keep([finding(file=str(script))], str(script)).suppressed == 1
    script.write_bytes(b"# \xff\xfe\nstep(\n'''")
    assert choose().keep([finding(file=str(script))], str(script)).suppressed == 0


def test_a_comment_without_effect_is_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n# trainwreck: ignore-file\nstep()  # trainwreck: ignore[stael]\n# trainwreck: ignore[stale]\n",
        encoding="utf-8",
    )
    remarks = choose().keep([finding(file=str(script)), finding(file=str(script))], str(script)).remarks
    assert remarks == [
        f"{script}:2: `ignore-file` has no effect here; move it above the first statement",
        f"{script}:3: there is no check or outcome stael; did you mean stale?",
        f"{script}:4: `ignore` has no effect on a line of its own; write it behind the code of the line",
    ]


# --- baselines


def test_a_baseline_knows_a_finding_whose_line_has_moved(tmp_path: Path) -> None:
    script = tmp_path / "src" / "train.py"
    script.parent.mkdir()
    script.write_text("import torch\n\n    step()\n", encoding="utf-8")
    without_line = finding("ownership/foreign", "in words", 0)
    text = to_baseline([finding(file=str(script)), without_line], str(script), tmp_path)
    assert [one["file"] for one in json.loads(text)["findings"]] == ["src/train.py"] * 2
    (tmp_path / "base.json").write_text(text, encoding="utf-8")
    script.write_text("import torch\n\nnew()\nstep()\n", encoding="utf-8")
    moved, changed = finding(file=str(script), line=4), finding(file=str(script), line=3)
    others = [finding("gradients/empty", str(script), 4), changed]
    baseline = read_baseline(tmp_path / "base.json")
    assert baseline.drop_known([moved, without_line, *others], str(script)) == others


def test_the_same_findings_give_the_same_baseline(tmp_path: Path) -> None:
    findings = [finding(line=3), finding("modes/trains-in-eval-mode"), finding(step=5)]
    texts = {to_baseline(order, "train.py", tmp_path) for order in (findings, findings[::-1])}
    assert len(texts) == 1
    assert len(json.loads(texts.pop())["findings"]) == 2


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", '{"format": 2, "findings": []}', '{"format": 1}', '{"format": 1, "findings": [3]}', "[" * 10_000,
     '{"format": 1, "findings": [{"file": "a", "check": "b", "outcome": "c"}]}',
     '{"format": 1, "findings": [{"file": "a", "check": "b", "outcome": "c", "source": 1}]}',
     '{"format": 1, "findings": [{"file": [], "check": "b", "outcome": "c", "source": "d"}]}'],
)  # fmt: skip
def test_a_damaged_baseline_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"base\.json is not a baseline: .*\nWrite it again with --write-baseline"):
        read_baseline(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(path)


# --- settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", r"pyproject\.toml: \[tool\.trainwreck\] has no key selct; did you mean select\?\nThe keys are"),
        ("select = 'modes'", r"pyproject\.toml: select in \[tool\.trainwreck\] must be a list of strings, not 'modes'"),
        ("ignore = [1]", "must be a list of strings"),
        ("strict = 1", "strict in .* must be true or false, not 1"),
        ("steps = true", "steps in .* must be a whole number from 1, not True"),
        ("steps = 0", "must be a whole number from 1"),
        ("baseline = []", "baseline in .* must be a string"),
        ("steps = ", "is not valid TOML"),
    ],
)
def test_a_wrong_setting_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.trainwreck]\n{text}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_settings(tmp_path / "train.py")


def test_the_nearest_pyproject_counts(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "scripts"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.trainwreck]\nsteps = 3\n", encoding="utf-8")
    assert read_settings(inner / "train.py").steps == 3
    near = inner.parent / "pyproject.toml"
    near.write_text("[tool.trainwreck]\nselect = ['modes']\nbaseline = 'base.json'\n", encoding="utf-8")
    found = read_settings(inner / "train.py")
    assert (found.select, found.steps, found.baseline) == (("modes",), DEFAULT_STEPS, inner.parent / "base.json")
    near.write_text("[tool.ruff]\n", encoding="utf-8")
    assert read_settings(inner / "train.py").steps == DEFAULT_STEPS


def test_without_tomllib_a_line_says_that_the_table_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tomllib", None)  # as in Python 3.10
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.ruff]\n", encoding="utf-8")
    read_settings(tmp_path / "train.py")
    assert capsys.readouterr().err == ""
    path.write_text("[tool.trainwreck]\nsteps = 3\n", encoding="utf-8")
    assert read_settings(tmp_path / "train.py").steps == DEFAULT_STEPS
    assert "is not read" in capsys.readouterr().err


# --- formats


def test_sarif_has_the_structure_that_viewers_need(tmp_path: Path) -> None:
    script = tmp_path / "my code" / "train.py"
    findings = [
        finding("gradients/stale", str(script), 3),
        finding("ownership/frozen", "where the optimizer is made", 0),
        finding("overfit/rate-too-low", "/elsewhere/train.py", 7),
    ]
    whole = report(*findings, script=str(script), errors={"modes": "Traceback"}, failure="exit 3")
    log = json.loads(render(whole, "sarif", tmp_path))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    [one] = log["runs"]
    driver = one["tool"]["driver"]
    assert driver["name"] == "trainwreck"
    assert [rule["id"] for rule in driver["rules"]] == list(OUTCOMES)
    for rule in driver["rules"]:
        assert rule["help"]["text"].startswith("Fix: ") and rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    results = one["results"]
    assert [driver["rules"][result["ruleIndex"]]["id"] for result in results] == [item.name for item in findings]
    assert [result["level"] for result in results] == ["error", "warning", "note"]
    assert "Where: where the optimizer is made." in results[1]["message"]["text"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert places == [
        {"artifactLocation": {"uri": "my%20code/train.py"}, "region": {"startLine": 3}},
        {"artifactLocation": {"uri": "my%20code/train.py"}},
        {"artifactLocation": {"uri": "file:///elsewhere/train.py"}, "region": {"startLine": 7}},
    ]
    [invocation] = one["invocations"]
    assert invocation["executionSuccessful"] is False
    notes = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert notes == ["The check modes failed: Traceback", f"{script}: exit 3"]


def test_annotations_of_github_are_escaped(tmp_path: Path) -> None:
    odd = finding("ownership/frozen", str(tmp_path / "a,b:c%.py"), 3, "100%\r\n::error::")
    lines = render(report(odd, finding("overfit/rate-too-low", "in words", 0)), "github", Path.cwd()).splitlines()
    cure = OUTCOMES["ownership/frozen"].cure
    meaning = OUTCOMES["ownership/frozen"].meaning
    assert lines[0] == (
        f"::warning file={tmp_path}/a%2Cb%3Ac%25.py,line=3,title=ownership/frozen::"
        f"{meaning} Found: 100%25%0D%0A::error::.%0AFix: {cure}"
    )
    assert lines[1].startswith("::notice file=train.py,title=overfit/rate-too-low::")
    assert lines[2] == "Watched 12 updates: 1 advice, 1 note."


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (report(), "Watched 12 updates: nothing wrong was found."),
        (report(finding(), finding(line=5)), "Watched 12 updates: 1 alarm."),
        (report(finding(), finding("gradients/empty")), "Watched 12 updates: 2 alarms."),
        (report(suppressed=1, known=2), "Watched 12 updates: 2 known, 1 suppressed, nothing else was found."),
        (report(finding(), steps=1, suppressed=1), "Watched 1 update: 1 alarm, 1 suppressed."),
        (report(steps=0), "Watched 0 updates."),
        (report(failure="exit 3"), "Watched 12 updates, then the script failed."),
    ],
)
def test_the_last_line_counts_what_is_hidden(found: Report, line: str) -> None:
    assert list(report_lines(found))[-1] == line


# --- text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, width: int, no_color: str) -> str:
    for name, value in {"COLUMNS": str(width), "TERM": "xterm-256color", "NO_COLOR": no_color}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    found = [finding(name, text="value " * 30, file="x" * 150) for name in OUTCOMES]
    print_lines(report_lines(report(*found, known=3), width_of(stream)), stream)
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 80])
def test_text_on_a_terminal_fits_its_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, width, no_color="1").splitlines()
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


def test_text_has_colours_only_on_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31malarm\x1b[0m: gradients/stale" in printed(monkeypatch, 80, no_color="")
    stream = io.StringIO()
    print_lines(report_lines(report(finding(text="value " * 30)), width_of(stream)), stream)
    assert "\x1b" not in stream.getvalue()
    assert f"  Found: {'value ' * 30}.\n" in stream.getvalue()  # one line, so that a search finds it


def test_explain_tells_of_every_check_and_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    listed = capsys.readouterr().out
    assert [name for name in CHECKS if not re.search(rf"^{name} +\S", listed, re.MULTILINE)] == []
    for check in CHECKS.values():
        assert main(["explain", check.name]) == 0
        text = capsys.readouterr().out
        assert re.findall(r"^(\w+): \S+/(\S+)$", text, re.MULTILINE) == [
            (outcome.level, name) for name, outcome in check.outcomes.items()
        ]
        listed += text
    assert max(map(len, listed.splitlines())) <= 80
    assert "\x1b" not in listed
    assert main(["explain", "modes/trains-in-eval-mode"]) == 0
    text = capsys.readouterr().out
    assert "Practise: make exercise BREAK=train_in_eval_mode" in text and "dropout-in-eval-mode" not in text
    assert main(["explain", "mods"]) == 2
    assert "did you mean modes?" in capsys.readouterr().err


# --- pages


class Elements(HTMLParser):
    """Checks that elements are nested, and notes them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_escapes_everything_and_asks_no_network(tmp_path: Path) -> None:
    bad = "<script>alert('&')</script>"
    script = tmp_path / f"{'<b>'}.py"
    script.write_text(f"import torch\nx = '$page'\nprint(\"{bad}\")\n# {bad}\n", encoding="utf-8")
    found = finding(file=str(script), text=bad)
    whole = report(
        found, finding("overfit/stalls", bad, 0, bad), script=str(script), errors={"modes": bad}, failure=bad,
        losses=[3.0, 2.0],
    )  # fmt: skip
    text = page(whole)
    assert text == page(whole)
    elements = Elements(text)
    tags = {tag for tag, _ in elements.seen}
    assert {"main", "header", "article", "mark", "svg"} <= tags
    assert not {"script", "link", "img", "iframe", "b"} & tags
    assert [values for _, values in elements.seen if {"src", "href", "onclick"} & values.keys()] == []
    assert "url(" not in text and "@import" not in text
    assert "<mark>3  print(&quot;&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;&quot;)\n</mark>" in text
    assert "x = &#x27;$page&#x27;" in text


def test_a_page_of_a_file_that_is_gone_has_no_source() -> None:
    assert "<figure" not in page(report(finding(file="/nowhere/train.py")))
    assert "<figure" not in page(report(finding(file=__file__, line=10**6)))


@pytest.mark.parametrize(
    ("losses", "path"),
    [
        ([2.0, 1.0, 0.0], "M0.00 0.00 L50.00 50.00 L100.00 100.00"),
        ([2.0, float("nan"), 0.0, float("inf"), 1.0], "M0.00 0.00h0 M50.00 100.00h0 M100.00 50.00h0"),
        ([1e308, -1e308], "M0.00 0.00 L100.00 100.00"),
        ([1.0, 1.0], "M0.00 0.00 L100.00 0.00"),
    ],
)
def test_a_curve_has_gaps_where_losses_are_not_finite(losses: list[float], path: str) -> None:
    curve = loss_curve(losses)
    assert f'd="{path}"' in curve
    assert ("not finite" in curve) == (len(losses) == 5)


def test_too_few_losses_have_no_curve() -> None:
    assert loss_curve([]) == loss_curve([1.0]) == loss_curve([1.0, float("nan")]) == ""


# --- in a program


def train(steps: int = 4) -> None:
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.1), nn.Linear(8, 1)).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(steps):
        model(torch.randn(16, 5)).square().mean().backward()  # trainwreck: ignore[modes]
        optimizer.step()


@pytest.mark.parametrize(
    ("select", "ignore", "found", "last"),
    [
        (["gradients", "modes"], (), ["gradients/stale"], "1 alarm, 1 suppressed."),
        ("gradients,modes", "stale", [], "1 suppressed, nothing else was found."),
        (["gradients"], ["gradients/empty"], ["gradients/stale"], "1 alarm."),
    ],
)
def test_watch_selects_ignores_and_reads_comments(
    select: str, ignore: str, found: list[str], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with trainwreck.watch(4, select=select, ignore=ignore) as watch:
        train()
    assert [one.name for one in watch.findings] == found
    assert capsys.readouterr().err.splitlines()[-1] == f"Watched 4 updates: {last}"


def test_watch_refuses_unknown_names_before_the_training() -> None:
    with pytest.raises(ValueError, match="did you mean modes"), trainwreck.watch(select=["mode"]):
        raise AssertionError


def test_watch_prints_to_a_stream_that_can_only_write(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tee:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

    tee = Tee()
    monkeypatch.setattr(sys, "stderr", tee)
    with trainwreck.watch(4, select=["gradients"]):
        train()
    assert tee.text.endswith("Watched 4 updates: 1 alarm.\n")


def test_strict_watch_still_raises_for_what_is_left() -> None:
    with pytest.raises(trainwreck.Unsound) as error, trainwreck.watch(4, select=["gradients", "modes"], strict=True):
        train()
    assert "gradients/stale" in str(error.value) and "modes" not in str(error.value)


# --- the command


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my project")
    source = SCRIPT.replace(".mean()\n", ".mean()  # trainwreck: ignore[modes]\n")
    (folder / "train it.py").write_text(source, encoding="utf-8")
    return folder


def test_the_command_writes_each_result(project: Path) -> None:
    files = ("--format", "sarif", "--output", "out.sarif", "--html", "out.html")
    done = run(project, *QUICK, *files, "train it.py")
    assert done.returncode == 1, done.stderr
    assert "Where: train it.py:10 (after 2 updates)" in done.stdout
    assert done.stdout.endswith("Watched 4 updates: 1 alarm, 1 suppressed.\n")
    [result] = json.loads((project / "out.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train%20it.py"
    text = (project / "out.html").read_text(encoding="utf-8")
    assert "<mark>10      optimizer.step()\n</mark>" in text and "<svg" in text


def test_a_baseline_hides_old_findings_and_the_command_line_wins_over_settings(project: Path) -> None:
    settings = project / "pyproject.toml"
    settings.write_text(
        '[tool.trainwreck]\nselect = ["gradients"]\nsteps = 4\nbaseline = "old.json"\n', encoding="utf-8"
    )
    written = run(project, "--write-baseline", "old.json", "train it.py")
    assert written.returncode == 0, written.stderr
    assert "Known findings in old.json: 1." in written.stderr
    done = run(project.parent, f"{project.name}/train it.py")
    assert (done.returncode, done.stdout) == (0, "Watched 4 updates: 1 known, nothing else was found.\n")
    done = run(project, "--no-baseline", "--steps", "3", "--json", "train it.py")
    found = json.loads(done.stdout)
    assert (done.returncode, found["steps"], found["known"]) == (1, 3, 0)
    settings.unlink()


def test_advice_counts_only_if_the_user_is_strict(tmp_path: Path) -> None:
    source = SCRIPT.replace(
        "[*model.parameters()]", "[*model.parameters(), *unused.requires_grad_(False).parameters()]"
    )
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.trainwreck]\nstrict = true\n", encoding="utf-8")
    options = ("--select", "ownership", "--steps", "4")
    done = run(tmp_path, *options, "train.py")
    assert done.stdout.endswith("Watched 4 updates: 1 advice.\n")
    assert done.returncode == 1
    assert run(tmp_path, *options, "--no-strict", "train.py").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "mode", "train.py"], "--select: there is no check mode; did you mean modes?"),
        (["--ignore", "modes", "--ignore", "stael", "train.py"], "--ignore: there is no check or outcome stael"),
        (["--baseline", "none.json", "train.py"], "There is no baseline none.json: write it with --write-baseline"),
        (["--baseline", "train.py", "train.py"], "train.py is not a baseline"),
        (["--html", "train.py", "train.py"], "--html would overwrite the program train.py"),
        (["--output", "none/out.json", "train.py"], "--output: there is no folder none: make it first"),
        (["--write-baseline", ".", "train.py"], "--write-baseline: . is a folder"),
        (["--steps", "3", "explain"], "`python -m trainwreck explain` takes no options before it"),
        (["explain", "x"], "explain: there is no check or outcome x"),
    ],
)
def test_a_mistake_ends_the_command_before_the_script_runs(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_option_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--selct", "modes", "train.py"])
    assert stop.value.code == 2
    assert "there is no option --selct; did you mean --select?" in capsys.readouterr().err


def test_a_failed_script_leaves_the_old_baseline(tmp_path: Path) -> None:
    (tmp_path / "explain").write_text("raise SystemExit(9)\n", encoding="utf-8")  # a script named like a command
    (tmp_path / "base.json").write_text("old", encoding="utf-8")
    done = run(tmp_path, *QUICK, "--write-baseline", "base.json", "./explain")
    assert done.returncode == 2
    assert "the script exited with status 9" in done.stderr
    assert done.stdout == "Watched 0 updates, then the script failed.\n"
    assert (tmp_path / "base.json").read_text(encoding="utf-8") == "old"


def test_ctrl_c_in_a_further_run_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"findings": [{"check": "modes"}], "failure": "", "steps": 12, "seeds": [], "losses": [], "loaders": True}
    results = iter([first])

    def run(*_: object, **__: object) -> dict[str, object]:
        for result in results:
            return result
        raise KeyboardInterrupt

    monkeypatch.setattr("trainwreck.runs._run", run)
    found = watch_script(Path("train.py"), [], 12)
    assert found is not None
    assert (found["findings"], found["interrupted"]) == (first["findings"], True)
