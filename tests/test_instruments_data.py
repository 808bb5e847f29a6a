import pytest
from instrument_subjects import mini_subject, real_subject
from runs import MINI, edited

from harness.checks.data import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

VALIDATION = "    return train, (data.validation.images.float() / 255, data.validation.labels)\n"


def test_labels_that_move_are_found_and_healthy_data_are_not() -> None:
    broken = measure(real_subject("label_permute"))
    assert broken.outcome == "unpaired"
    assert (broken.unpaired or 0.0) > 0.9
    assert broken.looked_up == 5 * 64
    assert broken.relabelled > 0.8 * broken.looked_up
    healthy = measure(real_subject("label_permute", healthy=True))
    assert (healthy.outcome, healthy.unpaired, healthy.relabelled) == ("sound", 0.0, 0)
    assert healthy.doubles == (0, 0, 0)
    assert healthy.histogram is not None
    assert sum(batch for _, _, batch in healthy.histogram.values()) == 64


@pytest.mark.parametrize(
    ("validation", "outcome"),
    [
        ("    return train, (train[0][:20], train[1][:20])\n", "overlap"),
        ("    return train, (data.validation.images.float(), data.validation.labels)\n", "unlike"),
        ("    return (train[0] / 0, train[1]), train\n", "non-finite"),
        ("    return (train[0], train[1].roll(1)), (train[0], train[1])\n", "overlap"),
    ],
)
def test_what_is_wrong_with_the_splits_is_said(validation: str, outcome: str) -> None:
    measured = measure(mini_subject(edited(MINI, (VALIDATION, validation))))
    assert measured.outcome == outcome


def test_images_that_are_mirrored_with_their_labels_are_sound() -> None:
    shuffled = edited(
        MINI,
        (
            "    return inputs, labels\n",
            "    order = torch.randperm(len(labels), generator=rng)\n"
            "    return inputs[order].flip(3), labels[order]\n",
        ),
    )
    assert measure(mini_subject(shuffled)).outcome == "sound"


def test_targets_of_another_kind_than_the_labels_are_no_mistake() -> None:
    one_hot = edited(
        MINI, ("    return inputs, labels\n", "    return inputs, F.one_hot(labels, 10).float()\n")
    )
    measured = measure(mini_subject(one_hot))
    assert (measured.outcome, measured.unpaired, measured.looked_up) == ("sound", None, 0)


def test_the_evidence_shows_the_images_as_the_network_gets_them() -> None:
    evidence = show(measure(mini_subject()))
    assert evidence.sheet is not None
    assert evidence.sheet.shape == (8, 1, 6, 6)
    assert evidence.sheet.labels is not None
    splits, histogram = evidence.tables
    assert [row[0] for row in splits.rows][:2] == ["training inputs", "training targets"]
    assert sum(int(row[1] or 0) for row in histogram.rows) == 40
