"""The behaviour of programs: every break changes it, another style does not, and a small change is found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.grading import behaviour
from helpers.mini_experiments import edited

from grader.replay.request import own_settings
from grader.score.behaviour import break_requests, sound_programs, sound_requests
from grader.selfcheck.runs import request_of
from harness.behaviour.compare import (
    ASPECTS,
    Behaviour,
    agrees_with_broken,
    dependencies_of,
    difference,
    differences,
    lies_between,
    lost_features,
    not_executed,
)
from harness.behaviour.sound import (
    Break,
    Example,
    SoundPrograms,
    aspects_of_break,
    compare,
    encode,
    places_of,
    read_sound_programs,
)
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.form import is_script
from harness.recipes.known_edits import load_variants
from harness.recipes.recipe import BEHAVIOUR, EXERCISES, load_recipes

pytestmark = pytest.mark.usefixtures("torch_as_found")
# A script runs for half a minute here, so one recipe of each script is enough: `make selfcheck` proves them all.
SCRIPTS = {recipe.experiment: recipe.id for recipe in load_recipes()[0] if is_script(recipe.healthy_source())}
RECIPES = sorted(recipe.id for recipe in load_recipes()[0] if SCRIPTS.get(recipe.experiment, recipe.id) == recipe.id)


def measured(recipe: str, source: str) -> Behaviour:
    found = behaviour(recipe, source).behaviour
    assert found is not None
    return found


def apart(recipe: str, *edits: tuple[str, str]) -> set[str]:
    """Return the aspects in which the healthy program of a recipe changes after an edit."""
    healthy = load_recipe(recipe).healthy_source()
    return set(differences(measured(recipe, edited(healthy, *edits)), measured(recipe, healthy)))


def stored(recipe: str) -> SoundPrograms:
    found = read_sound_programs(EXERCISES / recipe / BEHAVIOUR)
    assert found is not None
    return found


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_break_changes_the_behaviour(recipe: str) -> None:
    broken, programs = measured(recipe, load_recipe(recipe).broken_source()), stored(recipe)
    assert aspects_of_break(broken, programs.reference)
    # No correct fix behaves like the broken program where that fix acts.
    assert compare(broken, programs).open_causes


@pytest.mark.parametrize("recipe", {recipe.experiment: recipe.id for recipe in load_recipes()[0]}.values())
def test_the_stored_behaviours_are_those_of_this_version(recipe: str) -> None:
    healthy = measured(recipe, load_recipe(recipe).healthy_source())
    assert not any("raises" in figures for figures in healthy.values())
    assert differences(healthy, stored(recipe).reference) == {}
    assert all(healthy[aspect].keys() == figures.keys() for aspect, figures in stored(recipe).reference.items())


@pytest.mark.parametrize(
    ("recipe", "edit"),
    [
        ("loss_sum", ("F.cross_entropy(outputs, labels)", "F.nll_loss(F.log_softmax(outputs, 1), labels)")),
        ("loss_sum", ("F.cross_entropy(outputs, labels)", 'F.cross_entropy(outputs, labels, reduction="none").mean()')),
        ("huge_lr", ("optimizer.zero_grad()", "model.zero_grad()")),
        ("huge_lr", ("model.parameters(), lr=0.1", "[{'params': [p]} for p in model.parameters()], lr=0.1")),
        ("last_batch_evaluated", ("outputs.argmax(dim=1) == labels", "outputs.max(dim=1).indices.eq(labels)")),
        ("causal_mask_missing", (".triu(diagonal=1)", ".tril().logical_not()")),
        ("label_noise", ("data.train.images.float() / 255", "data.train.images.float() * (1 / 255)")),
    ],
)
def test_another_way_to_write_a_function_is_the_same(recipe: str, edit: tuple[str, str]) -> None:
    assert apart(recipe, edit) == set()


@pytest.mark.parametrize(
    ("recipe", "edit", "aspect"),
    [
        (
            "label_noise",
            ("    return train, validation\n", "    train[1][:2] = 0\n    return train, validation\n"),
            "training data",
        ),
        (
            "loss_sum",
            ("F.cross_entropy(outputs, labels)", "F.cross_entropy(outputs, labels, label_smoothing=0.01)"),
            "loss",
        ),
        ("last_batch_evaluated", ("labels).float().mean()", "labels).float().mean() / 0.99"), "evaluation"),
        ("excess_weight_decay", ("momentum=0.9", "momentum=0.9, weight_decay=0.02"), "update rule"),
        ("huge_lr", ("lr=0.1", "lr=0.09"), "update rule"),
        (
            "mixup_hard_label",
            ("    return inputs, labels\n", "    return 0.98 * inputs + 0.02 * inputs.roll(1, 0), labels\n"),
            "batches",
        ),
        ("lora_merge_unscaled", ("self.B @ self.A * (ALPHA / RANK)", "self.B @ self.A"), "serving"),
        ("clip_after_step", ("max_norm=1.0", "max_norm=1.1"), "step"),
        # Only in some states of the training, in some batches, or on some data.
        (
            "missing_zero_grad",
            (
                "    optimizer.zero_grad()\n    loss = compute_loss(model(inputs), labels)\n",
                "    loss = compute_loss(model(inputs), labels)\n    if loss > 0.02:\n        optimizer.zero_grad()\n",
            ),
            "step",
        ),
        (
            "clip_before_unscale",
            (
                "    scaler.step(",
                "    if scaler.get_scale() < 2.0**16:\n        optimizer.zero_grad()\n    scaler.step(",
            ),
            "step",
        ),
        (
            "causal_mask_missing",
            ("scores = scores.masked_fill(", "scores = scores if x.shape[1] < LENGTH else scores.masked_fill("),
            "network",
        ),
        (
            "mixup_hard_label",
            (
                "    return inputs, labels\n",
                "    inputs = torch.cat([inputs[:40], inputs[40:] / 2 + inputs[40:].flip(0) / 2])\n"
                "    return inputs, labels\n",
            ),
            "batches",
        ),
        (
            "nan_blank_image",
            (
                "    return train, validation\n",
                "    validation[0][:1] /= validation[0][:1].std()\n    return train, validation\n",
            ),
            "training data",
        ),
    ],
)
def test_a_small_dose_is_seen(recipe: str, edit: tuple[str, str], aspect: str) -> None:
    assert aspect in apart(recipe, edit)


def test_the_same_program_is_measured_alike_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from helpers.grading import behaviour; from harness.recipes.catalogue import load_recipe;"
        "import torch; torch.set_num_threads(1); import json;"
        "print(json.dumps(behaviour('huge_lr', load_recipe('huge_lr').healthy_source()).model_dump()['behaviour']))"
    )
    arguments = [sys.executable, "-c", code, str(Path(__file__).parent)]
    found = {subprocess.run(arguments, capture_output=True, check=True, env=os.environ).stdout for _ in range(2)}
    assert len(found) == 1


def test_what_an_aspect_rests_on_has_no_circle() -> None:
    assert all(name not in dependencies_of(name) for name in ASPECTS)


def test_numbers_agree_within_rounding_alone() -> None:
    one: Behaviour = {"loss": {"x": [1.0, 2.0]}}
    two: Behaviour = {"loss": {"x": [1.00001, 2.0]}}
    assert difference("loss", one, two) is None
    others: list[dict[str, list[float | str]]] = [
        {"x": [1.01, 2.0]},
        {"x": [1.0]},
        {"y": [1.0, 2.0]},
        {"x": [1.0, "nan"]},
        {},
    ]
    for other in others:
        found = difference("loss", one, {"loss": other})
        assert found is not None
        assert "healthy program" in str(found)
    assert difference("loss", {"loss": {"x": ["nan"]}}, {"loss": {"x": ["nan"]}}) is None
    assert lies_between("loss", {"loss": {"x": [1.5, 2.0]}}, one, {"loss": {"x": [2.0, 2.0]}})
    assert not lies_between("loss", {"loss": {"x": [2.5, 2.0]}}, one, {"loss": {"x": [2.0, 2.0]}})


def test_a_feature_is_lost_if_it_acts_in_every_right_program() -> None:
    def features(**acting: float) -> Behaviour:
        return {"features": {name: [value] for name, value in acting.items()}}

    assert lost_features(features(dropout=0.0), [features(dropout=1.0)]) == ("dropout",)
    assert lost_features(features(), [features(dropout=1.0)]) == ("dropout",)
    assert lost_features(features(dropout=0.0), [features(dropout=1.0), features(dropout=0.0)]) == ()
    assert lost_features(features(dropout=1.0), [features(dropout=0.0)]) == ()
    shuffled: Behaviour = {"batches": {"different orders": [1.0]}}
    one_order: Behaviour = {"batches": {"different orders": [0.5]}}
    assert lost_features(one_order, [shuffled]) == ("shuffling",)
    assert lost_features(shuffled, [one_order]) == ()


def loss(value: float) -> Behaviour:
    return {"loss": {"x": [value]}}


RATE = Break(
    id="rate",
    edited=("loss",),
    changed=("loss",),
    right=(Example(aspects=("loss",), behaviour=loss(1.0), other_end=loss(2.0)),),
    doubtful=(Example(aspects=("loss",), behaviour=loss(2.0), other_end=loss(5.0)),),
    broken=loss(9.0),
)


@pytest.mark.parametrize(
    ("value", "left", "as_before", "doubtful"),
    [
        (1.5, False, False, False),
        (2.0, False, False, False),
        (3.0, True, False, True),
        (5.0, True, False, False),
        (6.0, True, False, False),
        (9.0, True, True, False),
    ],
)
def test_a_number_within_the_range_fixes_a_cause(value: float, left: bool, as_before: bool, doubtful: bool) -> None:
    (cause,) = compare(loss(value), SoundPrograms(reference=loss(1.2), breaks=(RATE,))).causes
    assert (cause.difference is not None, cause.as_before, cause.doubtful) == (left, as_before, doubtful)


def steps(usual: float, small: float) -> Behaviour:
    return {"step": {"usual inputs, moves": [usual], "small loss, moves": [small]}}


def test_a_fault_that_acts_in_some_states_alone_still_acts() -> None:
    one = Break(id="x", edited=("step",), changed=("step",), broken=steps(5.0, 5.0))
    programs = SoundPrograms(reference=steps(1.0, 1.0), breaks=(one,))
    (cause,) = compare(steps(1.0, 5.0), programs).causes
    assert cause.as_before
    (cause,) = compare(steps(1.0, 3.0), programs).causes
    assert cause.difference is not None
    assert not cause.as_before


def test_a_step_that_asks_for_the_state_of_the_training_is_conditional() -> None:
    elsewhere = Break(id="x", edited=("loss",), changed=("loss",), broken={**steps(1.0, 1.0), **loss(9.0)})
    programs = SoundPrograms(reference={**steps(1.0, 1.0), **loss(1.0)}, breaks=(elsewhere,))
    found = compare({**steps(1.0, 3.0), **loss(1.0)}, programs)
    assert not found.open_causes
    assert found.conditional is not None
    # A step that always differs is another step, which the checks judge.
    assert compare({**steps(2.0, 3.0), **loss(1.0)}, programs).conditional is None


def test_fewer_wrong_examples_are_a_weaker_fault() -> None:
    def data(*numbers: float) -> Behaviour:
        return {"training data": {"pairs": list(numbers)}}

    one = Break(id="x", edited=("training data",), changed=("training data",), broken=data(0.0, 1.0, 0.5))
    programs = SoundPrograms(reference=data(1.0, 0.0, 0.5), breaks=(one,))
    for own, weaker in ((data(0.9, 0.1, 0.52), True), (data(1.0, 0.0, 0.9), False), (data(1.3, -0.3, 0.5), False)):
        (cause,) = compare(own, programs).causes
        assert cause.difference is not None
        assert cause.weaker == weaker


def test_statements_that_nothing_executes_are_named() -> None:
    source = edited(
        load_recipe("huge_lr").healthy_source(),
        ("    optimizer.step()\n", "    optimizer.step()\n    if len(inputs) > 10**6:\n        loss = 2 * loss\n"),
        ("    loss.backward()\n", "    share = 1.0 if loss > 1e-9 and len(inputs) else 2.0 * (1.0 if loss else 3.0)\n"
         "    if loss.isnan():\n        print(f'{loss.item()}')\n    (loss * share).backward()\n"),
        ("    outputs = model(inputs)\n", "    outputs = model(inputs) if STRICT else None\n    if not STRICT:\n"
         "        outputs = 2 * outputs\n    if BATCH_SIZE > 1e9:\n        outputs = 3 * outputs\n"),
        ("BATCH_SIZE = ", "STRICT = True\nBATCH_SIZE = "),
        ("def build_model", "def unused(x):\n    return x + 1\n\n\ndef build_model"),
    )  # fmt: skip
    own, healthy = measured("huge_lr", source), measured("huge_lr", load_recipe("huge_lr").healthy_source())
    assert not_executed(healthy, [healthy]) == ()
    # A new function that is never called has no effect. Code that a constant of the file disables cannot act, but a run
    # may change some constants.
    assert [text.partition(" in ")[0] for text in not_executed(own, [healthy])] == [
        "loss = 2 * loss", "2.0 * (1.0 if loss else 3.0)", "1.0", "3.0", "outputs = 3 * outputs",
    ]  # fmt: skip
    # Code that only prints has no effect. Neither does code for GPUs, or a loop over an empty list.
    source = edited(
        load_recipe("huge_lr").healthy_source(),
        ("    optimizer.step()\n", "    missing = [p for p in model.parameters() if p.grad is None]\n    if missing:\n"
         "        print(len(missing))\n    lost = [p for p in model.parameters() if p.grad is None]\n"
         "    if torch.cuda.is_available():\n        loss = 2 * loss\n"
         "    for b in model.buffers():\n        b.zero_()\n"
         "    for _ in NONE:\n        loss = 3 * loss\n    optimizer.step()\n    (loss * len(lost)).item()\n"),
        ("BATCH_SIZE = ", "NONE = ()\nBATCH_SIZE = "),
    )  # fmt: skip
    own = measured("huge_lr", source)
    assert not_executed(own, [healthy]) == ("p in [p for p in model.parameters() if p.grad is None]",), "that is `lost`"
    # Another function may use a value that is kept outside.
    source = edited(
        load_recipe("huge_lr").healthy_source(),
        ("    optimizer.step()\n", "    global KEPT\n    KEPT = [p for p in model.parameters() if p.grad is None]\n"
         "    optimizer.step()\n"),
        ("BATCH_SIZE = ", "KEPT = []\nBATCH_SIZE = "),
    )  # fmt: skip
    kept = not_executed(measured("huge_lr", source), [healthy])
    assert kept == ("p in [p for p in model.parameters() if p.grad is None]",)
    # A function of the healthy program that no run calls has an effect for a person who calls it.
    table: Behaviour = {"not executed": {"f": ["(never called)", "return 1"]}}
    other: Behaviour = {"not executed": {"f": ["(never called)", "return 2"]}}
    assert not_executed(table, [other]) == ("return 1",)
    assert not_executed(table, [table]) == ()


def test_a_break_of_some_parameters_is_fixed_there_and_in_a_network_of_the_same_form() -> None:
    def weights(*sizes: float) -> Behaviour:
        return {"first weights": {"sizes": list(sizes)}}

    edited, reference, broken = ("first weights",), weights(1.0, 1.0, 1.0), weights(9.0, 9.0, 1.0)
    places = places_of(broken, [reference], edited)
    assert places == {"first weights": {"sizes": (0, 1)}}
    one = Break(id="x", edited=edited, changed=edited, places=places, broken=broken)
    programs = SoundPrograms(reference=reference, breaks=(one,))
    elsewhere = compare(weights(1.0, 1.0, 3.0), programs)
    assert not elsewhere.open_causes
    assert [item.aspect for item in elsewhere.other] == ["first weights"]
    assert compare(weights(1.0, 9.0, 1.0), programs).open_causes
    assert compare(weights(1.0, 1.0), programs).open_causes
    # A break that adds or removes parameters has no places of its own.
    assert places_of(weights(1.0), [reference], edited) == {}


def test_a_right_fix_in_another_place_counts_as_a_whole() -> None:
    """The network may keep its softmax only together with the loss of the correct fix that keeps the softmax."""
    reference: Behaviour = {"network": {"x": [1.0]}, "loss": {"x": [1.0]}, "step": {"x": [1.0]}}
    elsewhere: Behaviour = {"network": {"x": [7.0]}, "loss": {"x": [3.0]}, "step": {"x": [1.1]}}
    example = Example(aspects=("network", "loss"), behaviour=elsewhere)
    one = Break(id="softmax", edited=("network",), changed=("network", "step"), right=(example,))
    programs = SoundPrograms(reference=reference, breaks=(one,))
    assert compare(elsewhere, programs).is_right
    assert compare({**elsewhere, "loss": {"x": [1.0]}}, programs).open_causes
    # Network and loss may also make the same steps as the reference fix, if these steps show the fault.
    together = {**elsewhere, "loss": {"x": [2.0]}, "step": {"x": [1.0]}}
    assert compare(together, programs).is_right
    silent = one.model_copy(update={"changed": ("network",)})
    assert compare(together, programs.model_copy(update={"breaks": (silent,)})).open_causes


@pytest.mark.parametrize(
    ("name", "aspect"),
    [
        ("default_init_deep_relu", "first weights"),
        ("kd_arguments_swapped", ""),
        ("pruning_undone", ""),  # a correct fix masks weights after the step of an unchanged network
        ("lora_both_zero", "first weights"),  # a correct fix starts with the other matrix at zero
    ],
)
def test_known_masks_and_the_places_of_a_break_reach_the_comparison(name: str, aspect: str) -> None:
    recipe = load_recipe(name)
    reference = request_of(recipe, recipe.healthy_source(), own_settings(recipe, recipe.dataset))
    wanted = break_requests(reference) | sound_requests(reference)
    wanted = {role: one for role, one in wanted.items() if not role.startswith("sound ")}
    programs = sound_programs({role: behaviour(name, one.source) for role, one in wanted.items()})
    assert programs is not None
    (one,) = programs.breaks
    assert len(one.masked) == sum(item.verdict == "masking" for item in load_variants(name)) > 0
    assert set(one.places) == ({aspect} if aspect else set())
    for behaviour_left in (one.broken, *(example.behaviour for example in one.masked)):
        assert behaviour_left is not None
        found = compare(behaviour_left, programs)
        assert found.open_causes or found.lost
    if name == "default_init_deep_relu":  # the break does not change the last layer
        places = one.places[aspect]["sizes"]
        assert 0 < len(places) <= len(programs.reference[aspect]["sizes"]) - 2


def test_sound_programs_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "behaviour.txt"
    programs = SoundPrograms(reference={"loss": {"x": [1.0, "nan"]}}, breaks=(RATE,))
    path.write_bytes(encode(programs.shorten()))
    found = read_sound_programs(path)
    assert found is not None
    assert found.reference == programs.reference
    assert [one.broken for one in found.breaks] == [None]
    assert b"loss" not in path.read_bytes()
    path.write_text("x")
    with pytest.raises(UserError, match="Restore the original file"):
        read_sound_programs(path)
    assert read_sound_programs(tmp_path / "none.txt") is None


def test_a_metric_that_was_not_broken_stays_a_right_one() -> None:
    def program(metric: float, cause: float) -> Behaviour:
        return {"evaluation": {"x": [metric]}, **loss(cause)}

    def judged(programs: SoundPrograms, metric: float) -> tuple[str, ...]:
        return tuple(one.aspect for one in compare(program(metric, 1.0), programs).newly_wrong)

    broken = Break(id="x", edited=("loss",), changed=("loss",), broken=program(1.0, 9.0))
    programs = SoundPrograms(reference=program(1.0, 1.0), breaks=(broken,), sound=(program(2.0, 1.0),))
    for one in (programs, programs.shorten()):
        assert judged(one, 3.0) == ("evaluation",)
        assert judged(one, 2.0) == ()
        assert judged(one, 1.0) == ()


def test_another_network_answers_otherwise_without_being_wrong() -> None:
    def program(network: float, answer: float) -> Behaviour:
        return {"network": {"x": [network]}, "serving": {"x": [answer]}}

    one = Break(id="x", edited=("serving",), changed=("serving",), broken=program(1.0, 9.0))
    programs = SoundPrograms(reference=program(1.0, 1.0), breaks=(one,))
    (same,) = compare(program(1.0, 5.0), programs).causes
    assert (same.is_exact, same.doubtful) == (True, False)
    (other,) = compare(program(2.0, 5.0), programs).causes
    assert other.doubtful, "a right program with this network has other answers, too"
    (broken,) = compare(program(2.0, 9.0), programs).causes
    assert (broken.as_before, broken.doubtful) == (True, False)


def test_a_figure_of_a_sound_program_shows_no_fault() -> None:
    one = Break(id="x", edited=("step",), changed=("step",), broken=steps(5.0, 5.0))
    programs = SoundPrograms(reference=steps(1.0, 1.0), breaks=(one,), sound=(steps(2.0, 5.0),))
    (cause,) = compare(steps(1.5, 5.0), programs).causes
    assert not cause.as_before, "clipping makes the same small step in a sound program"
    none: Behaviour = {"step": {"usual inputs, statistics": [], "usual inputs, moves": [1.5]}}
    broken: Behaviour = {"step": {"usual inputs, statistics": [], "usual inputs, moves": [5.0]}}
    reference: Behaviour = {"step": {"usual inputs, statistics": [0.3], "usual inputs, moves": [1.0]}}
    assert not agrees_with_broken("step", none, broken, reference), "a network without statistics has none"


def test_a_network_without_norms_does_not_lose_clipping() -> None:
    def program(network: float, clipping: float) -> Behaviour:
        return {"network": {"x": [network]}, "features": {"clipping": [clipping], "dropout": [clipping]}}

    programs = SoundPrograms(reference=program(1.0, 1.0))
    assert compare(program(1.0, 0.0), programs).lost == ("clipping", "dropout")
    assert compare(program(2.0, 0.0), programs).lost == ("dropout",)


def test_a_student_has_the_sound_edits_of_what_a_break_changes() -> None:
    def program(cause: float, step: float) -> Behaviour:
        return {**loss(cause), **steps(step, step)}

    one = Break(id="x", edited=("loss",), changed=("loss", "step"), broken=program(9.0, 9.0))
    programs = SoundPrograms(reference=program(1.0, 1.0), breaks=(one,), sound=(program(1.0, 2.0),))
    for found in (programs, programs.shorten()):
        assert compare(program(1.0, 2.0), found).is_right
        assert not compare(program(1.0, 3.0), found).is_right


def test_a_student_has_no_update_rule_that_masks_the_break() -> None:
    def rule(value: float) -> Behaviour:
        return {"update rule": {"x": [value]}}

    mask = Example(aspects=("update rule",), behaviour=rule(2.0))
    one = Break(id="x", edited=("update rule",), changed=("update rule",), masked=(mask,), broken=rule(9.0))
    programs = SoundPrograms(reference=rule(1.0), breaks=(one,), sound=(rule(2.0), rule(3.0)))
    for found in (programs, programs.shorten()):
        assert compare(rule(3.0), found).is_right
        assert compare(rule(2.0), found).open_causes
