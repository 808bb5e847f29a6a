import random
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.mini_experiments import MINI, edited, mini_run
from torch import nn

from harness.errors import UserError
from harness.run.checkpoint import checkpoint_bytes, load_checkpoint, restore_rng_states, rng_states

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


@pytest.mark.parametrize("value", [-0.0, float("nan"), float("inf"), 2**80, True, None, 1, 1.0, "x", "", []])
def test_numbers_and_strings_come_back_as_they_were(value: object, tmp_path: Path) -> None:
    found = load_checkpoint(saved(tmp_path, checkpoint_bytes(state(value=value))))["value"]
    assert (type(found), repr(found)) == (type(value), repr(value))


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", 1j, nn.ReLU(), np.zeros(2), max])
def test_what_a_checkpoint_cannot_hold_is_named(value: object) -> None:
    with pytest.raises(UserError, match=f"contains a {type(value).__name__}"):
        checkpoint_bytes(state(model={"a": [value]}))


# --- reading ------------------------------------------------------------------------------------------------


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
        # Padding and dates of the archive have no meaning.
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
    with pytest.raises(UserError, match="is not a checkpoint of trainwreck"):
        load_checkpoint(tmp_path / "checkpoint.pt")


class Attack:
    """An object that writes a file when it is unpickled."""

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
    torch.load(tmp_path / "checkpoint.pt", weights_only=False)  # without the protection, the attack works
    assert target.exists()


MISFITS = {
    "another width": (MINI, edited(MINI, ("36, 16", "36, 17"), ("16, 10", "17, 10"))),
    "a scheduler that was not there": (
        MINI,
        edited(MINI, ("    return None\n", "    return warmup_cosine(optimizer, warmup_steps=2, total_steps=9)\n")),
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
    draws()  # an odd number of normal draws leaves a second value stored in each generator
    data = checkpoint_bytes(state(rng=rng_states()))
    expected = draws() + draws()
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    assert draws() != expected[: len(expected) // 2]
    restore_rng_states(load_checkpoint(saved(tmp_path, data))["rng"])
    assert draws() + draws() == expected
