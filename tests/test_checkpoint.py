import copy
import random
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import AMP, CHANCE, MINI, edited, load, mini_data, mini_run
from torch import nn

from harness.errors import UserError
from harness.run.checkpoint import (
    canonical,
    checkpoint_bytes,
    load_checkpoint,
    restore_rng_states,
    restore_training_state,
    rng_states,
    training_state,
)

pytestmark = pytest.mark.usefixtures("torch_as_found")


def state(**changes: Any) -> dict[str, Any]:
    return {"format_version": 1, "model": {"weight": torch.arange(6.0).view(2, 3)}, **changes}


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "checkpoint.pt"
    path.write_bytes(data)
    return path


# --- equal states, equal bytes ------------------------------------------------------------------------------

SHARED = "".join(["a text", " made here"])
TENSOR = torch.arange(12.0).view(3, 4)

EQUAL = {
    "shared strings": ({"a": SHARED, "b": SHARED}, {"a": SHARED, "b": "".join(["a text ", "made here"])}),
    "shared lists": ({"a": (shared := [1, 2]), "b": shared}, {"a": [1, 2], "b": [1, 2]}),
    "shared tensors": ({"a": TENSOR, "b": TENSOR}, {"a": TENSOR, "b": TENSOR.clone()}),
    "tuples and lists": ({"a": (0.9, 0.999)}, {"a": [0.9, 0.999]}),
    "kinds of mappings": (OrderedDict(a=1), {"a": 1}),
    "parameters": ({"a": nn.Parameter(TENSOR)}, {"a": TENSOR}),
    "views": ({"a": torch.arange(24.0)[:12].view(3, 4)}, {"a": TENSOR}),
    "strides": ({"a": TENSOR.t().contiguous().t()}, {"a": TENSOR}),
    "expanded": ({"a": torch.ones(1).expand(5)}, {"a": torch.ones(5)}),
    "numbers of numpy": ({"a": np.float64(0.1)}, {"a": 0.1}),
    "sizes": ({"a": torch.Size([2, 3])}, {"a": [2, 3]}),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_equal_states_give_equal_bytes(name: str, tmp_path: Path) -> None:
    first, second = (checkpoint_bytes(state(model=model)) for model in EQUAL[name])
    assert first == second
    again = checkpoint_bytes(load_checkpoint(saved(tmp_path, first)))
    assert again == first


@pytest.mark.parametrize(
    "other",
    [
        {"weight": torch.arange(6.0).view(3, 2)},
        {"weight": torch.arange(6.0).view(2, 3).double()},
        {"weight": torch.tensor([[0.0, 1, 2], [3, 4, 5.0000005]])},
        {"weights": torch.arange(6.0).view(2, 3)},
        {},
    ],
)
def test_other_states_give_other_bytes(other: dict[str, Any]) -> None:
    assert checkpoint_bytes(state()) != checkpoint_bytes(state(model=other))


@pytest.mark.parametrize("value", [-0.0, float("nan"), float("inf"), 2**80, True, None, 1, 1.0, "x", "", []])
def test_numbers_and_strings_come_back_as_they_were(value: object, tmp_path: Path) -> None:
    found = load_checkpoint(saved(tmp_path, checkpoint_bytes(state(value=value))))["value"]
    assert (type(found), repr(found)) == (type(value), repr(value))


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", 1j, nn.ReLU(), np.zeros(2), max])
def test_what_a_checkpoint_cannot_hold_is_named(value: object) -> None:
    with pytest.raises(UserError, match=f"holds a {type(value).__name__}"):
        checkpoint_bytes(state(model={"a": [value]}))


def test_canonical_shares_nothing_with_the_state() -> None:
    original = state()
    copied = canonical(original)
    original["model"]["weight"][0, 0] = 99.0
    assert copied["model"]["weight"][0, 0] == 0.0


@pytest.mark.parametrize("source", [MINI, CHANCE, AMP], ids=["mlp", "chance", "amp"])
def test_a_run_saves_the_same_bytes_after_a_round_trip(source: str, tmp_path: Path) -> None:
    run = mini_run(tmp_path, source, epochs=2)
    data = run.bytes("checkpoint.pt")
    loaded = load_checkpoint(tmp_path / "checkpoint.pt")
    assert checkpoint_bytes(loaded) == data
    # And through the objects of another model, optimizer, scheduler and scaler.
    parts = fresh_parts(tmp_path / "other", source)
    restore_training_state(loaded, **parts)
    position = {key: loaded[key] for key in ("epoch", "step", "best")}
    assert checkpoint_bytes(training_state(**parts, position=position)) == data


def fresh_parts(folder: Path, source: str) -> dict[str, Any]:
    """Return the parts of a run that has not begun, from another seed."""
    torch.manual_seed(99)
    experiment = load(folder, source)
    model = experiment.build_model()
    optimizer = experiment.build_optimizer(model)
    return {
        "model": model,
        "optimizer": optimizer,
        "scheduler": experiment.build_scheduler(optimizer, 10),
        "scalers": experiment.scalers(),
        "generators": {"order": torch.Generator(), "augmentation": torch.Generator()},
    }


# --- reading ------------------------------------------------------------------------------------------------


def test_torch_reads_every_checkpoint_with_weights_only(tmp_path: Path) -> None:
    run = mini_run(tmp_path, AMP, epochs=2)
    for name in ("checkpoint.pt", "best.pt"):
        found = torch.load(tmp_path / name, weights_only=True)
        assert (found["format_version"], found["epoch"] in (1, 2)) == (1, True)
    # Two epochs of five steps: the scale doubled after steps 3, 6 and 9.
    assert run.state()["scaler"]["scaler"]["scale"] == 2048.0
    assert run.state()["scaler"]["scaler"]["_growth_tracker"] == 1
    assert run.state()["step"] == 10


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no checkpoint at .*checkpoint\.pt: start the run without --resume"):
        load_checkpoint(tmp_path / "checkpoint.pt")


def test_a_truncated_checkpoint_is_damaged_at_whatever_length(tmp_path: Path) -> None:
    data = checkpoint_bytes(state())
    for length in (0, 1, 30, 100, *range(200, len(data), 97), len(data) - 1):
        with pytest.raises(UserError, match="is damaged"):
            load_checkpoint(saved(tmp_path, data[:length]))


def test_an_altered_byte_never_gives_other_content(tmp_path: Path) -> None:
    weight = torch.arange(64.0)
    data = checkpoint_bytes(state(model={"weight": weight}))
    inside = data.index(weight.numpy().tobytes())
    found_damaged = 0
    for position in [*range(0, len(data), 7), *range(inside, inside + 256, 5)]:
        altered = bytearray(data)
        altered[position] ^= 0x11
        try:
            found = load_checkpoint(saved(tmp_path, bytes(altered)))
        except UserError:
            found_damaged += 1
            continue
        # Padding and dates of the archive mean nothing.
        assert not inside <= position < inside + 256
        assert checkpoint_bytes(found) == data, position
    assert found_damaged > 60


FOREIGN: dict[str, Any] = {
    "a list": [1, 2],
    "no version": {"model": {}},
    "another version": {"format_version": 2},
    "weights alone": nn.Linear(2, 2).state_dict(),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_no_checkpoint_of_ours(name: str, tmp_path: Path) -> None:
    torch.save(FOREIGN[name], tmp_path / "checkpoint.pt")
    with pytest.raises(UserError, match="is not a checkpoint of this program"):
        load_checkpoint(tmp_path / "checkpoint.pt")


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "ran")


def test_nothing_in_a_checkpoint_is_run(tmp_path: Path) -> None:
    target = tmp_path / "attacked"
    torch.save({"format_version": 1, "x": Attack(target)}, tmp_path / "checkpoint.pt")
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(tmp_path / "checkpoint.pt")
    assert not target.exists()
    torch.load(tmp_path / "checkpoint.pt", weights_only=False)  # the attack is a real one
    assert target.exists()


MISFITS = {
    "another width": (MINI, edited(MINI, ("36, 16", "36, 17"), ("16, 10", "17, 10"))),
    "another layer": (MINI, edited(MINI, ("nn.ReLU(), ", "nn.ReLU(), nn.Linear(16, 16), "))),
    "more parameter groups": (
        MINI,
        edited(MINI, ("SGD(model.parameters(),", "SGD([{'params': [p]} for p in model.parameters()],")),
    ),
    "a scheduler that was not there": (
        MINI,
        edited(
            MINI,
            (
                "    return None\n",
                "    return warmup_cosine(optimizer, warmup_steps=2, total_steps=total_steps)\n",
            ),
        ),
    ),
    "a scaler that was not there": (MINI, MINI + '\n\nscaler = torch.amp.GradScaler("cpu")\n'),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_checkpoint_of_another_experiment_does_not_fit(name: str, tmp_path: Path) -> None:
    before, after = MISFITS[name]
    mini_run(tmp_path / "run", before, epochs=1)
    with pytest.raises(UserError, match="does not fit this experiment") as error:
        mini_run(tmp_path / "run", after, resume=True)
    assert "\n" not in str(error.value)


# --- generators ---------------------------------------------------------------------------------------------


def draws() -> list[float]:
    torch_draws = torch.randn(3).tolist()
    return [random.random(), random.gauss(0, 1), *np.random.normal(size=3), np.random.rand(), *torch_draws]


def test_all_three_generators_go_on_where_they_were(tmp_path: Path) -> None:
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    draws()  # an odd number of normal draws leaves a second one waiting in each
    data = checkpoint_bytes(state(rng=rng_states()))
    expected = draws() + draws()
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    assert draws() != expected[: len(expected) // 2]
    restore_rng_states(load_checkpoint(saved(tmp_path, data))["rng"])
    assert draws() + draws() == expected


def test_restoring_puts_back_model_optimizer_scheduler_scaler_and_generators(tmp_path: Path) -> None:
    source = edited(
        AMP,
        (
            "    return None\n",
            "    return warmup_cosine(optimizer, warmup_steps=2, total_steps=total_steps)\n",
        ),
    )
    parts = fresh_parts(tmp_path, source)
    experiment = load(tmp_path / "same", source)
    parts["scalers"] = experiment.scalers()
    (inputs, labels), _ = experiment.load_data(mini_data())
    for _ in range(4):
        experiment.train_step(parts["model"], parts["optimizer"], inputs, labels)
        parts["scheduler"].step()
        torch.rand(1, generator=parts["generators"]["order"])
    kept = copy.deepcopy(training_state(**parts, position={"epoch": 1}))
    other = fresh_parts(tmp_path / "other", source)
    restore_training_state(kept, **other)
    assert torch.equal(parts["model"][1].weight, other["model"][1].weight)
    weight, other_weight = parts["model"][1].weight, other["model"][1].weight
    assert torch.equal(
        parts["optimizer"].state[weight]["exp_avg_sq"], other["optimizer"].state[other_weight]["exp_avg_sq"]
    )
    assert other["scheduler"].get_last_lr() == parts["scheduler"].get_last_lr()
    assert other["optimizer"].param_groups[0]["lr"] == parts["optimizer"].param_groups[0]["lr"]
    assert other["scalers"]["scaler"].state_dict() == parts["scalers"]["scaler"].state_dict()
    order, other_order = parts["generators"]["order"], other["generators"]["order"]
    assert torch.rand(1, generator=order) == torch.rand(1, generator=other_order)
