"""`grader selfcheck` on one recipe and one seed: what is as declared passes, each kind of fault is found, exit 1."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from honest_class import HonestClass
from sandbox_marks import needs_sandbox

from grader.cli import cli
from grader.replay.cache import LIMIT_VARIABLE, entries
from grader.score.solutions import load_variants
from grader.selfcheck.command import SelfcheckOptions, run_selfcheck
from grader.selfcheck.parts import Part
from grader.selfcheck.seeds import data_sets_for
from harness.errors import UserError
from harness.recipe import EXERCISES, load_recipe

RECIPE = "huge_lr"
RATE = 'replace = "lr=10.0, momentum"'
HEALTHY = """\
format_version = 1
[[variant]]
experiment = "digits_mlp"
id = "short"
says = "three epochs"
[[variant.edit]]
find = "EPOCHS = 5"
replace = "EPOCHS = 3"
[[variant]]
experiment = "shapes_cnn"
id = "of_no_recipe_here"
says = "another experiment"
[[variant.edit]]
find = "EPOCHS = 3"
replace = "EPOCHS = 1"
"""
UNSOUND = """\
[[variant]]
experiment = "digits_mlp"
id = "unsound"
says = "a rate that is far too high"
[[variant.edit]]
find = "EPOCHS = 5"
replace = "EPOCHS = 1"
[[variant.edit]]
find = "lr=0.1"
replace = "lr=10.0"
[[variant]]
experiment = "digits_mlp"
id = "fails"
says = "a data set that it cannot read"
[[variant.edit]]
find = "data.validation.labels)"
replace = "data.nothing)"
"""


def options(tmp_path: Path, *parts: Part) -> SelfcheckOptions:
    # One job: every process more imports torch once more.
    return SelfcheckOptions(
        seeds=1, jobs=1, parts=parts, only=(RECIPE,), cache=tmp_path / "no data", replays=tmp_path / "replays",
        exercises=tmp_path / "exercises", solutions=tmp_path / "solutions",
    )  # fmt: skip


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """The recipe in a folder of its own, to be changed."""
    shutil.copytree(EXERCISES / RECIPE, tmp_path / "exercises" / RECIPE)
    return tmp_path / "exercises" / RECIPE / "recipe.toml"


def change(path: Path, find: str, replace: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(find) == 1
    path.write_text(text.replace(find, replace), encoding="utf-8")


def test_a_recipe_that_is_as_declared_passes(
    recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "no limit")
    with pytest.raises(UserError, match=LIMIT_VARIABLE):
        run_selfcheck(options(tmp_path, "seeds"))
    monkeypatch.setenv(LIMIT_VARIABLE, "1GB")
    assert run_selfcheck(options(tmp_path, "seeds")) == 0
    assert len(entries(tmp_path / "replays")) == 4
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == (
        "Seeds: 1 recipes, 1 seeds, 1 pairs of recipe and data: 2 of 2 runs are as declared,"
        " 2 of 2 repeat to the byte."
    )
    assert "mnist was left out" in out
    assert "seeds, first runs: 2 of 2" in err


def test_a_wrong_threshold_and_a_run_that_does_not_repeat_are_found(
    recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(recipe_file, "above  = 50.0", "above  = 1e30")
    change(recipe_file, RATE, "replace = \"lr=10 + __import__('os').getpid() / 1e9, momentum\"")
    assert run_selfcheck(options(tmp_path, "seeds")) == 1
    out = capsys.readouterr().out
    assert "huge_lr on digits, seed 100, broken run: max loss is" in out
    assert "(> 1e+30)" in out
    assert "huge_lr on digits, seed 100, broken run: it does not repeat to the byte" in out
    assert "healthy run:" not in out
    assert "1 of 2 runs are as declared, 1 of 2 repeat to the byte." in out


def test_healthy_variants_raise_no_alarm_and_unsound_ones_do(
    recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "solutions").mkdir()
    listed = tmp_path / "solutions" / "healthy.toml"
    listed.write_text(HEALTHY, encoding="utf-8")
    assert run_selfcheck(options(tmp_path, "healthy")) == 0
    assert "1 healthy variants, 1 runs: 1 of 1 raise no alarm" in capsys.readouterr().out
    listed.write_text(HEALTHY + UNSOUND, encoding="utf-8")
    assert run_selfcheck(options(tmp_path, "healthy")) == 1
    out = capsys.readouterr().out
    assert "digits_mlp unsound, seed 100: huge_lr: probe learning_rate is 10, not below 1" in out
    assert "digits_mlp unsound, seed 100: huge_lr: max loss is" in out
    assert "digits_mlp fails, seed 100: experiment.py" in out
    assert "1 of 3 raise no alarm; the guardrails warned in 1 of 3 runs." in out


def selected_variants(folder: Path, *ids: str, verdict: str) -> None:
    """Keep the reference and these variants of the recipe, which are to get this verdict."""
    folder.mkdir(parents=True)
    lines = ["format_version = 1"]
    for variant in load_variants(RECIPE):
        if variant.id not in ("reference", *ids):
            continue
        given = variant.verdict if variant.id == "reference" else verdict
        lines += ["[[variant]]", f'id = "{variant.id}"', f'verdict = "{given}"', 'says = "x"']
        if variant.id != "reference":
            lines.append("held_back = true")
        for edit in variant.edits:
            lines += [
                "[[variant.edit]]",
                f"find = {json.dumps(edit.find)}",
                f"replace = {json.dumps(edit.replace)}",
            ]
    (folder / "variants.toml").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.slow
@needs_sandbox
def test_a_wrong_verdict_is_found_and_a_second_time_without_running_anything(
    honest: HonestClass, recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honest.remember(tmp_path / "replays")
    open_ones = [item for item in load_variants(RECIPE) if item.verdict == "wrong" and not item.held_back]
    selected_variants(tmp_path / "solutions" / RECIPE, open_ones[0].id, verdict="full")
    assert run_selfcheck(options(tmp_path, "variants")) == 1
    out, err = capsys.readouterr()
    assert f"huge_lr {open_ones[0].id}: 0, not 18 to 20: " in out
    assert out.splitlines()[-1] == "Variants: open 1 of 1 agree; held back 0 of 1 agree."
    assert "handing in: 2 of 2" in err
    assert run_selfcheck(options(tmp_path, "variants")) == 1
    again, err = capsys.readouterr()
    assert again == out
    assert {line.partition(":")[0] for line in err.splitlines()} <= {
        "taking in"
    }  # no replay is counted, and no run


@needs_sandbox
def test_the_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    for words in (["--only", RECIPE], ["--part", "seeds"], ["--without-held-back"]):
        done = CliRunner().invoke(cli, ["selfcheck", "--write", *words])
        assert isinstance(done.exception, UserError)
        assert "leave --only, --part and --without-held-back out" in str(done.exception)


def test_data_that_is_not_there_is_left_out_and_told(tmp_path: Path) -> None:
    there, missing = data_sets_for(load_recipe("forgotten_eval"), tmp_path)
    assert there == ["shapes"]
    assert len(missing) == 1
    assert missing[0].startswith("cifar10 was left out: ")
