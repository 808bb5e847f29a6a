"""The areas that no check judges completely, which triage shows if no check finds a fault."""

from harness.checks.core.outcomes import trips_of
from harness.recipes.recipe import experiment_names, experiment_source, load_recipes
from harness.student.blind_spots import blind_spot_lines, blind_spots


def test_each_fault_that_no_check_finds_is_in_an_area_that_is_shown() -> None:
    unseen = [recipe for recipe in load_recipes()[0] if not trips_of(recipe)]
    assert unseen
    for recipe in unseen:
        assert recipe.area in blind_spots(recipe.broken_source()), recipe.id


def test_the_text_does_not_depend_on_the_fault() -> None:
    texts = {tuple(blind_spot_lines(experiment_source(name))) for name in experiment_names()}
    assert len(texts) == 3  # experiments with functions, with or without `predict`, and scripts
    for recipe in load_recipes()[0]:
        assert [*blind_spot_lines(recipe.broken_source())] == [*blind_spot_lines(recipe.healthy_source())]


def test_a_line_names_the_functions_to_read_only_if_the_experiment_has_them() -> None:
    of_functions, of_script = (" ".join(blind_spot_lines(experiment_source(one))) for one in ("digits_mlp", "char_gpt"))
    assert "read build_optimizer and build_scheduler, and compare" in of_functions
    assert "build_optimizer" not in of_script
    assert "evaluation: " in of_script
