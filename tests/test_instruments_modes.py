from dataclasses import replace
from pathlib import Path

import pytest
from instrument_subjects import mini_subject, real_subject
from runs import CHANCE, MINI, edited, mini_run

from harness.checks.modes import measure, show
from harness.errors import UserError

pytestmark = pytest.mark.usefixtures("torch_as_found")


def test_an_evaluation_in_training_mode_is_found_and_a_healthy_one_is_not() -> None:
    broken = measure(real_subject("forgotten_eval"))
    assert broken.outcome == "unrepeatable"
    written, training, own = broken.evaluations
    assert written.first != written.second
    assert written.moved > 0.0
    assert training.moved > 0.0
    assert (own.moved, own.first) == (0.0, own.second)
    healthy = measure(real_subject("forgotten_eval", healthy=True))
    assert healthy.outcome == "agree"
    assert healthy.evaluations[0].first == pytest.approx(own.first)
    assert healthy.evaluations[2].first == own.first


def test_an_evaluation_that_forgets_the_mode_is_found_where_the_network_has_none() -> None:
    forgotten = measure(mini_subject(edited(MINI, ("    model.eval()\n", ""))))
    assert forgotten.evaluations[0].first == forgotten.evaluations[0].second
    assert forgotten.outcome == "unrepeatable"


def test_an_evaluation_of_something_else_is_told() -> None:
    half = edited(
        CHANCE, ("    outputs = model(inputs)\n    accuracy", "    outputs = -model(inputs)\n    accuracy")
    )
    assert measure(mini_subject(half)).outcome == "other-mode"


def test_the_network_is_that_of_the_checkpoint_where_there_is_one(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "run", CHANCE)
    subject = mini_subject(CHANCE)
    measured = measure(replace(subject, checkpoint=run.folder / "checkpoint.pt"))
    last = run.epochs[-1]
    assert measured.evaluations[0].first == (last["val_loss"], last["val_accuracy"])
    assert "checkpoint" in show(measured).what
    assert measure(subject).evaluations[0].first != measured.evaluations[0].first
    with pytest.raises(UserError, match="no checkpoint of this experiment"):
        measure(replace(mini_subject(MINI), checkpoint=run.folder / "checkpoint.pt"))
