"""The commands of the checks as a student types them, and their output on a terminal and as JSON."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.check_subjects import measure_here, say
from helpers.commands import edit, mistake, run_command, succeed

from harness.checks import check_names, every_check, load_check
from harness.checks.core.finding import Cell, Finding, Table
from harness.checks.core.report import CheckReport
from harness.cli import cli
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Recipe, recipe_ids
from harness.run.settings import RunSettings
from harness.student.show_checks import show
from harness.workspace.workspace import create_workspace

HOSTILE = "<script>alert(1)</script>[bold]"


def workspace_of(recipe: Recipe, work: Path) -> Path:
    """Make a workspace without runs, and return its experiment."""
    settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    return create_workspace(work, recipe.id, recipe.broken_source(), settings).experiment


def tells(text: str, recipe: Recipe) -> list[str]:
    """Return the parts of a recipe's answer in a text. Ignore the recipe's id as the argument of a command."""
    text = re.sub(rf"harness [a-z-]+ {recipe.id}\b", "", text)
    said_of_it = rf'"target": "{recipe.id}"|\b{recipe.id}: (the original experiment|triage)'
    text = re.sub(said_of_it, "", text)
    secrets = [recipe.title, *(part.strip() for item in recipe.breaks for part in (item.find, item.replace))]
    words = [*recipe_ids(), *(item.says for item in (*recipe.symptoms, *recipe.observations))]
    return [secret for secret in (*secrets, *words) if secret and secret in text]


# --- commands -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_triage_without_a_workspace_leaves_no_file_and_names_the_next_step(tmp_path: Path) -> None:
    recipe = load_recipe("huge_lr")
    said = succeed("triage", "huge_lr", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(said.splitlines()) < 50
    assert re.search(r"^Next:\n  read: ", said, re.MULTILINE)
    # The fault itself comes first, then its consequences, in the order of the checks.
    wrong = ["learning-rate", "overfit", "lr-find", "update-size", "gradients", "activations"]
    assert f"6 of 28 checks found something wrong: {', '.join(wrong)}.\n" in said
    assert re.findall(r"^  [a-z-]+ +harness ([a-z-]+) huge_lr$", said, re.MULTILINE) == wrong
    assert "dead units 100 %" in said
    walk = {name.replace("_", "-") for name in check_names() if load_check(name).in_triage}
    lists = re.search(r"^Found nothing wrong: (.*)\.\nHad nothing to judge: (.*)\.$", said, re.MULTILINE)
    assert lists
    named = [re.findall(r"([a-z-]+)(?: \([a-z-]+\))?(?:, |$)", found) for found in lists.groups()]
    assert sorted([*wrong, *named[0], *named[1]]) == sorted(walk)
    assert {"tokens", "amp-off", "serving"} <= set(named[1])
    assert tells(said, recipe) == []


@pytest.mark.slow
def test_any_training_script_can_be_triaged_and_is_told_that_it_is_sound(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(load_recipe("huge_lr").healthy_source())
    said = succeed("triage", "mine.py", cwd=tmp_path)
    assert said.startswith("mine.py, seed 42, data digits\n")
    assert "Everything is sound: " in said
    assert "Next:" not in said


@pytest.mark.slow
def test_an_ordinary_script_is_watched_with_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("from torch import nn\nnet = nn.Linear(4, 2)\n", encoding="utf-8")
    loop = "loss = F.cross_entropy(net(torch.randn(8, 4)), torch.arange(8) % 2); loss.backward(); optimizer.step()"
    script = (
        "import torch\nimport torch.nn.functional as F\nfrom model import net\n"
        f"optimizer = torch.optim.SGD(net.parameters(), 0.1)\nfor _ in range(20):\n    {loop}\n"
    )
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    done = run_command("triage", "train.py", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert [one["outcome"] for one in json.loads(done.stdout)["findings"] if one["level"] == "alarm"] == ["stale"]
    said = mistake("triage", "train.py", "--seed", "3", cwd=tmp_path)
    assert "train.py has no functions of an experiment, so --seed does not apply to it." in said


@pytest.mark.slow
def test_an_experiment_outside_of_a_workspace_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("WIDTH = 3\n", encoding="utf-8")
    source = load_recipe("huge_lr").healthy_source().replace("import torch\n", "import torch\nimport neighbour\n", 1)
    (tmp_path / "own.py").write_text(source, encoding="utf-8")
    assert "all-move" in succeed("audit", "own.py", cwd=tmp_path)


def test_a_script_may_have_data_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_found: None
) -> None:
    measure_here(monkeypatch)
    source = load_recipe("huge_lr").healthy_source().replace("nn.Linear(784, 128)", "nn.Linear(5, 128)")
    start, end = source.index("def load_data"), source.index("def build_model")
    own = "def load_data(data):\n    x = torch.randn(200, 5)\n    y = (x[:, 0] > 0).long()\n"
    own += "    return (x[:150], y[:150]), (x[150:], y[150:])\n\n\n"
    script = tmp_path / "own.py"
    script.write_text(source[:start] + own + source[end:])
    for check in ("overfit", "data", "modes", "first-loss"):
        found = json.loads(say(check, str(script), "--json"))
        assert (found["target"], found["seed"], found["sound"]) == (str(script), 42, True)


def test_the_experiment_of_the_workspace_is_measured_and_without_one_that_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_found: None
) -> None:
    measure_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe("label_permute")
    experiment = workspace_of(recipe, tmp_path / "work")
    edit(experiment, "labels[order]", "labels")
    found = json.loads(say("data", "label_permute", "--json"))
    file = str(Path("work/label_permute/experiment.py"))
    assert (found["target"], found["file"], found["sound"]) == ("label_permute", file, True)
    assert "--work" not in found["checks"][0]["command"]
    monkeypatch.chdir(tmp_path / "work" / "label_permute")
    assert json.loads(say("data", "label_permute", "--json"))["sound"]
    handed_out = json.loads(say("data", "label_permute", "--work", "none", "--json"))
    # Suggested next commands measure the same experiment.
    assert handed_out["checks"][0]["command"] == "harness data label_permute --work none"
    assert (handed_out["file"], handed_out["checks"][0]["outcome"]) == (None, "unpaired")
    assert tells(json.dumps(handed_out), recipe) == []


def test_an_experiment_that_raises_gives_its_own_error(tmp_path: Path) -> None:
    experiment = workspace_of(load_recipe("huge_lr"), tmp_path / "work")
    edit(experiment, "    loss.backward()\n", "    loss.backwards()\n")
    said = mistake("overfit", "huge_lr", cwd=tmp_path)
    assert said.startswith(f"{experiment}: train_step raised AttributeError: ")
    (line,) = (n for n, text in enumerate(experiment.read_text().splitlines(), 1) if "backwards" in text)
    assert f"line {line}, in train_step: loss.backwards()" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gradients", "huge_lr", "--dataset", "shapes"), "choose from digits, mnist."),
        (("triage", "nowhere.py"), "There is no file nowhere.py"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert message in mistake(*words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- output -------------------------------------------------------------------------------------------------


FULL = {"tables": (Table("A table", ("name", "x"), (("first", 1e-9), (HOSTILE, math.nan))),)}


def reports(more: dict[str, Any] | None = None, **outcomes: str) -> list[CheckReport]:
    figures: dict[str, Cell] = {"a figure": 0.123456, "another": math.inf, "none": None, "yes": True}
    return [
        CheckReport(load_check(name), "huge_lr", Finding(outcome, f"0.5 of 1 {HOSTILE}", figures, **(more or {})))
        for name, outcome in outcomes.items()
    ]


def test_the_terminal_shows_every_figure_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = reports(FULL, overfit="stalls")
    show([one])
    said = capsys.readouterr().out
    for part in (
        one.check.question, one.check.summary, "stalls: 0.5 of 1", "a figure: 0.1235",
        "another: inf", "none: -", "yes: yes", "A table", "1e-09", HOSTILE, "Next:",
        "  harness loss-form huge_lr\n", one.outcome.reading,
    ):  # fmt: skip
        assert part in said, part


def test_the_walk_is_shown_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    walk = reports(overfit="stalls", data="unpaired", first_loss="chance", tokens="no-texts")
    show(walk)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "2 of 4 checks found something wrong: data, overfit.", "Likely cause:",
        "  unpaired       harness data huge_lr",
    ]  # fmt: skip
    assert lines[6:8] == ["  stalls         harness overfit huge_lr", f"    0.5 of 1 {HOSTILE}"]
    assert lines[9:11] == ["Found nothing wrong: first-loss (chance).", "Had nothing to judge: tokens (no-texts)."]
    # A check that has already run is not a next step.
    following = lines[lines.index("Next:") + 1 :]
    assert f"  read: {walk[1].outcome.look}" in following
    assert not [line for line in following if "harness data" in line]


def test_a_walk_without_a_cause_says_so_and_one_without_a_fault_says_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(reports(overfit="stalls", data="sound"))
    assert "No check shows the cause yet." in capsys.readouterr().out
    show(reports(first_loss="chance", data="sound"))
    said = capsys.readouterr().out
    assert "Does the code do anything that no check measures?" in said
    assert "  data: which examples are kept" in said
    assert said.endswith("  If you have fixed it: harness verify huge_lr\n") or "source " in said
    assert "healthy" not in said, "something is wrong with every exercise that has a name of its own"


def test_a_check_that_finds_something_is_shown_before_the_others_are_done(tmp_path: Path) -> None:
    """The first finding arrives while later checks still run, also through a pipe."""
    command = [str(Path(sys.executable).with_name("harness")), "triage", "label_off_by_one"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        heading, first = process.stdout.readline(), process.stdout.readline()
        running = process.poll() is None
        process.kill()
    assert heading.startswith("label_off_by_one: the original experiment")
    assert re.fullmatch(r"  [a-z-]+ finds [a-z-]+\n", first)
    assert running


def test_prints_of_the_experiment_do_not_bury_the_result_of_several_checks(tmp_path: Path) -> None:
    source = (
        load_recipe("huge_lr")
        .broken_source()
        .replace("    loss.backward()", "    print('PRINTED')\n    loss.backward()")
    )
    settings = RunSettings(seed=42, dataset="digits")
    (tmp_path / "quiet.py").write_text(
        "from harness.checks import run_checks\nfrom harness.run.settings import RunSettings\nimport sys\n"
        f"run_checks({source!r}, {settings!r}, ['first_loss', 'gradients'], quiet=sys.argv[1] == 'quiet')\n"
    )
    for how, shown in (("quiet", False), ("loud", True)):
        run = subprocess.run(
            [sys.executable, "quiet.py", how], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert ("PRINTED" in run.stdout + run.stderr) == shown


def test_a_terminal_gets_wrapped_sentences_and_whole_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    walk = reports(overfit="stalls", learning_rate="too-large", lr_find="above", first_loss="chance")
    show(walk)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(len(line) for line in lines if "source" not in line) <= 60
    assert "    The rate is at least 1, or a lower rate learns and this" in lines
    assert "    one does not." in lines
    start = lines.index("  read: build_optimizer: the learning rate; then everything")
    assert lines[start + 1] == "        that makes the gradient longer"


def test_a_shell_that_does_not_find_harness_is_told_what_to_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "a venv"))
    scripts = tmp_path / "a venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "activate").touch()
    (scripts / "harness").touch(mode=0o755)
    for path, told in (("/nowhere", True), (str(scripts), False)):
        monkeypatch.setenv("PATH", path)
        show(reports(overfit="stalls"))
        assert (f"source '{scripts}/activate'" in capsys.readouterr().out) == told
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    show(reports(overfit="stalls"))
    assert "source 'a venv/bin/activate'" in capsys.readouterr().out


def test_json_is_strict_and_whole() -> None:
    (one,) = reports(FULL, overfit="stalls")
    found = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert (found["outcome"], found["sound"]) == ("stalls", False)
    assert found["figures"]["another"] == "Infinity"
    assert found["tables"][0]["rows"][1][1] == "NaN"


def test_each_check_has_a_command_of_its_own() -> None:
    every = [load_check(name) for name in every_check()]
    assert [one.name for one in every if cli.commands[one.verb].short_help != one.question] == []
