"""`solutions/healthy.toml`: enough variants of every experiment, each another program."""

import ast
from pathlib import Path

import pytest

from grader.selfcheck.healthy import load_healthy
from harness.errors import UserError
from harness.recipe import experiment_source, load_recipe, recipe_ids

EXPERIMENTS = sorted({load_recipe(name).experiment for name in recipe_ids()})
ENTRY = """\
[[variant]]
experiment = "digits_mlp"
id = "short"
says = "x"
[[variant.edit]]
find = "EPOCHS = 5"
replace = "EPOCHS = 3"
"""


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_has_ten_variants_of_every_kind(experiment: str) -> None:
    own = [variant for variant in load_healthy() if variant.experiment == experiment]
    assert len(own) >= 10
    ids = {variant.id for variant in own}
    assert ids >= {"narrow", "wide", "adamw", "batch_128", "clipped", "accumulated"}
    assert ids & {"cosine", "constant_rate"}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_variant_is_another_program(experiment: str) -> None:
    sources = [variant.source() for variant in load_healthy() if variant.experiment == experiment]
    trees = {ast.dump(ast.parse(source)) for source in (*sources, experiment_source(experiment))}
    assert len(trees) == len(sources) + 1


def test_every_optimizer_rounds_alike_on_every_processor() -> None:
    for variant in load_healthy():
        for name in ("torch.optim.Adam(", "torch.optim.AdamW("):
            for call in variant.source().split(name)[1:]:
                assert "fused=True" in call.partition("\n")[0], variant.id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY + ENTRY, "same id"),
        (ENTRY.replace('id = "short"', 'id = "Too Short"'), "id"),
        (ENTRY + 'colour = "red"\n', "colour"),
        ("", "variant"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "healthy.toml").write_text("format_version = 1\n" + text, encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        load_healthy(tmp_path)
    assert "healthy.toml" in str(error.value)


def test_an_edit_that_does_not_fit_names_its_variant(tmp_path: Path) -> None:
    text = ENTRY.replace("EPOCHS = 5", "EPOCHS = 6")
    (tmp_path / "healthy.toml").write_text("format_version = 1\n" + text, encoding="utf-8")
    with pytest.raises(ValueError, match="healthy variant digits_mlp short"):
        load_healthy(tmp_path)[0].source()
