"""The commands as a student types them; those that measure anew start a process of their own."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import edit, mistake, succeed
from instrument_subjects import measure_here, say
from page_reader import Page
from run_files import make_workspace
from test_instruments_checks import TRIAGE

from harness.cli import cli
from harness.recipe import Recipe, load_recipe, recipe_ids
from harness.workspace import create_workspace


def workspace_of(recipe: Recipe, work: Path) -> Path:
    """Make a workspace without any run, and return its experiment."""
    from harness.run.settings import RunSettings

    settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    return create_workspace(work, recipe.id, recipe.broken_source(), settings).experiment


def tells(text: str, recipe: Recipe) -> list[str]:
    """Return what of a recipe's answer is in a text, beside its id as the argument of a command."""
    text = re.sub(rf"harness [a-z-]+ {recipe.id}\b", "", text)
    text = re.sub(
        rf'"exercise": "{recipe.id}"|triage_{recipe.id}\.html|\b{recipe.id}: (the experiment|triage)',
        "",
        text,
    )
    secrets = [recipe.title, *(part.strip() for item in recipe.breaks for part in (item.find, item.replace))]
    words = [*recipe_ids(), *(item.says for item in (*recipe.symptoms, *recipe.observations))]
    return [secret for secret in (*secrets, *words) if secret and secret in text]


@pytest.mark.slow
def test_triage_without_a_workspace_ends_with_a_page_and_the_next_step(tmp_path: Path) -> None:
    recipe = load_recipe("huge_lr")
    said = succeed("triage", "huge_lr", cwd=tmp_path)
    page = (tmp_path / "triage_huge_lr.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["triage_huge_lr.html"]
    assert len(said.splitlines()) < 45
    assert re.search(r"^Next:\n  harness lr-find huge_lr$", said, re.MULTILINE)
    for outcome in ("diverges", "better", "exploding", "dead"):
        assert outcome in said
        assert outcome in page
    assert {attributes["id"] for attributes in Page(page).all("h2")} == {*TRIAGE, "walk", "next"}
    assert tells(said, recipe) == tells(Page(page).words, recipe) == []


def test_a_healthy_edit_is_triaged_as_sound_from_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_found: None
) -> None:
    measure_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe("label_permute")
    experiment = workspace_of(recipe, tmp_path / "work")
    edit(experiment, "labels[order]", "labels")
    only = [word for check in ("overfit", "data") for word in ("--only", check)]
    found = json.loads(say("triage", "label_permute", "--json", *only))
    assert (found["exercise"], found["edited"]) == ("label_permute", True)
    assert [check["outcome"] for check in found["checks"]] == ["reaches", "sound"]
    assert all(check["sound"] for check in found["checks"])
    untouched = json.loads(say("data", "label_permute", "--untouched", "--json"))
    assert (untouched["edited"], untouched["outcome"]) == (False, "unpaired")
    assert untouched["next"] == ["read: what happens to inputs and labels between load_data and the network"]
    assert tells(json.dumps(untouched), recipe) == []


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
        (("overfit", "hugelr"), "did you mean huge_lr?"),
        (("triage", "huge_lr", "--only", "overfits"), "did you mean overfit?"),
        (("data", "hugelr"), "did you mean huge_lr?"),
        (("gradients", "huge_lr", "--dataset", "shapes"), "choose from digits, mnist."),
        (("compare", "huge_lr"), "There is no finished run 'huge_lr/broken'"),
        (("compare", "huge_lr/broken"), "Name a second one."),
        (("reproduce", "nowhere"), "There is no nowhere/experiment.py"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert message in mistake(*words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_runs_of_a_workspace_are_compared(tmp_path: Path) -> None:
    workspace_of(load_recipe("loss_sum"), tmp_path / "work")
    assert "no fixed run yet: make verify BREAK=loss_sum makes it" in mistake(
        "compare", "loss_sum/fixed", "x/y", cwd=tmp_path
    )
    make_workspace(tmp_path / "work")
    said = succeed("compare", "huge_lr", "--html", "compared.html", cwd=tmp_path)
    assert said.startswith("huge_lr/broken and huge_lr/fixed\n")
    assert "differs: step 0, loss: 2.3 and 2.235" in said
    assert "source_sha256" in said
    Page((tmp_path / "compared.html").read_text())
    # A folder is one with a slash in its name or without.
    (tmp_path / "here").symlink_to(tmp_path / "work/huge_lr/runs/fixed")
    found = json.loads(succeed("compare", "huge_lr/fixed", "here", "--json", cwd=tmp_path))
    assert found["outcome"] == "same"


def test_a_reproducer_fails_the_same_way_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_found: None
) -> None:
    measure_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    said = say("repro", "huge_lr")
    assert re.search(r"packed: step 2, loss = 630\d", said)
    assert said.endswith("  tar xzf repro.tar.gz && harness reproduce repro\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["tar", "-xzf", "repro.tar.gz", "-C", elsewhere], check=True)
    monkeypatch.chdir(elsewhere)
    assert "It fails the same way here" in say("reproduce", "repro")
    edit(elsewhere / "repro" / "experiment.py", "    loss.backward()\n", "    (2 * loss).backward()\n")
    done = CliRunner().invoke(cli, ["reproduce", "repro", "--json"])
    assert done.exit_code == 1
    assert json.loads(done.output)["outcome"] == "differs"
    monkeypatch.chdir(tmp_path)
    say("repro", "huge_lr", "--out", "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == (tmp_path / "repro.tar.gz").read_bytes()
