import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from grader.replay.inside.evaluate import fitting_weights, read_weights


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


class Named(nn.Module):
    """The same network in another author's style."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 2)


def test_weights_are_taken_by_name_or_else_in_their_order() -> None:
    own, other = network(), Named()
    assert fitting_weights(network(), own.state_dict()).keys() == own.state_dict().keys()
    taken = fitting_weights(own, other.state_dict())
    assert torch.equal(taken["0.weight"], other.first.weight)
    assert torch.equal(taken["2.bias"], other.last.bias)
    own.load_state_dict(taken)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 2)), "shape"),
        (nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), "has 4 tensors"),
    ],
)
def test_another_network_does_not_fit(other: nn.Module, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fitting_weights(network(), other.state_dict())


class Trap:
    """An object that runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("trapped"),))


def test_a_hostile_checkpoint_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in {"trap": pickle.dumps({"model": Trap()}), "none": b"", "text": b"weights"}.items():
        path = tmp_path / f"{name}.pt"
        path.write_bytes(data)
        with pytest.raises(ValueError, match="cannot be read"):
            read_weights(path)
    torch.save({"model": 3}, tmp_path / "number.pt")
    with pytest.raises(ValueError, match="no weights"):
        read_weights(tmp_path / "number.pt")
    assert not (tmp_path / "trapped").exists()
