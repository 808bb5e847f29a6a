import pytest
from instrument_subjects import mini_subject, real_subject
from runs import AMP, MINI, edited

from harness.checks.audit import measure, show

pytestmark = pytest.mark.usefixtures("torch_as_found")

FROZEN = edited(
    MINI,
    (
        "    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n",
        "    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n"
        "    model[1].weight.requires_grad_(False)\n"
        "    return model\n",
    ),
)
FORGOTTEN = edited(MINI, ("SGD(model.parameters()", "SGD(model[3].parameters()"))
STRANGE = edited(MINI, ("SGD(model.parameters()", "SGD(build_model().parameters()"))


def test_the_rate_of_a_recipe_is_there_to_be_seen_and_every_parameter_moves() -> None:
    broken, healthy = (measure(real_subject("huge_lr", healthy=healthy)) for healthy in (False, True))
    assert {parameter.lr for parameter in broken.parameters} == {10.0}
    assert {parameter.lr for parameter in healthy.parameters} == {0.1}
    assert healthy.outcome == "all-move"
    assert [p.name for p in healthy.parameters] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert all(p.moved_at == 0 and p.group == 0 and p.trainable for p in healthy.parameters)


@pytest.mark.parametrize(
    ("source", "outcome", "resting", "strangers"),
    [
        (MINI, "all-move", set(), 0),
        (AMP, "all-move", set(), 0),
        (FROZEN, "some-rest", {"1.weight"}, 0),
        (FORGOTTEN, "some-rest", {"1.weight", "1.bias"}, 0),
        (STRANGE, "none-moves", {"1.weight", "1.bias", "3.weight", "3.bias"}, 4),
    ],
    ids=["healthy", "scaled", "frozen", "forgotten", "strange"],
)
def test_parameters_that_rest_are_named(source: str, outcome: str, resting: set[str], strangers: int) -> None:
    measured = measure(mini_subject(source))
    assert measured.outcome == outcome
    assert {p.name for p in measured.parameters if p.moved_at is None} == resting
    assert measured.strangers == strangers
    assert all(p.entries_moved == 0.0 for p in measured.parameters if p.name in resting)


def test_groups_have_their_own_rates_before_any_schedule() -> None:
    groups = edited(
        MINI,
        (
            "SGD(model.parameters(), lr=0.05, momentum=0.9)",
            "SGD([{'params': model[1].parameters(), 'weight_decay': 0.5},"
            " {'params': model[3].parameters(), 'lr': 0.2}], lr=0.05)",
        ),
        (
            "    return None\n",
            "    return warmup_cosine(optimizer, warmup_steps=5, total_steps=total_steps)\n",
        ),
    )
    table = show(measure(mini_subject(groups))).tables[0]
    rows = {row[0]: row for row in table.rows}
    assert rows["1.weight"][2:6] == (True, 0, 0.05, 0.5)
    assert rows["3.bias"][2:6] == (True, 1, 0.2, 0.0)
