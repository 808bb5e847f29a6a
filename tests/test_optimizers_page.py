"""The table of optimizers is true: its own updates, run as they stand, are what torch.optim does."""

import inspect
from typing import Any

import pytest
import torch

from benchmarks.optimizer_page import PAGE, page, rows

STEPS = 50


def values(text: str) -> dict[str, Any]:
    """Return what a column of the table says, as Python reads it."""
    found: dict[str, Any] = eval(f"dict({text})")
    return found


def by_the_table(
    row: dict[str, str], start: torch.Tensor, gradients: torch.Tensor, **changed: float
) -> torch.Tensor:
    """Return the parameter after every step of the table's own update."""
    names: dict[str, Any] = {**values(row["defaults"]), **changed, "p": start.clone()}
    exec(row["state"], names)
    for number, gradient in enumerate(gradients, start=1):
        names |= {"g": gradient, "t": number}
        exec(row["update"], names)
    result: torch.Tensor = names["p"]
    return result


def by_torch(
    row: dict[str, str], start: torch.Tensor, gradients: torch.Tensor, **changed: float
) -> torch.Tensor:
    parameter = start.clone().requires_grad_()
    optimizer = getattr(torch.optim, row["class"])([parameter], **{**values(row["defaults"]), **changed})
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


ROWS = {row["optimizer"]: row for row in rows()}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("changed", [{}, {"lr": 0.05}, {"weight_decay": 0.1}], ids=str)
def test_the_update_is_that_of_torch(name: str, changed: dict[str, float]) -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(40, dtype=torch.float64, generator=generator)
    gradients = torch.randn(STEPS, 40, dtype=torch.float64, generator=generator)
    ours = by_the_table(ROWS[name], start, gradients, **changed)
    theirs = by_torch(ROWS[name], start, gradients, **changed)
    assert (ours - theirs).abs().max() < 1e-12
    assert (ours - start).abs().max() > 1e-3  # it moved, so that this could have failed


def test_the_five_optimizers_are_there_with_everything_that_is_asked() -> None:
    assert list(ROWS) == ["SGD", "SGD with momentum", "RMSProp", "Adam", "AdamW"]
    for row in ROWS.values():
        assert all(row[column] for column in row if column != "state")
        assert (row["state"] == "") == (row["keeps"] == "nothing")


@pytest.mark.parametrize("name", ROWS)
def test_the_defaults_are_those_of_torch(name: str) -> None:
    known = inspect.signature(getattr(torch.optim, ROWS[name]["class"])).parameters
    for key, value in values(ROWS[name]["defaults"]).items():
        assert value == known[key].default or (key, name) == ("momentum", "SGD with momentum")


def test_the_tips_that_name_figures_are_right() -> None:
    """RMSProp's first step, and momentum's where gradients keep their direction, are 10 times as long as the rate."""
    start, gradients = torch.zeros(1, dtype=torch.float64), torch.full((300, 1), 3.0, dtype=torch.float64)
    first = by_the_table(ROWS["RMSProp"], start, gradients[:1])
    assert -first.item() == pytest.approx(10 * 0.01)
    last, before = (by_the_table(ROWS["SGD with momentum"], start, gradients[:n]) for n in (300, 299))
    assert (before - last).item() == pytest.approx(10 * 0.001 * 3)
    assert torch.tensor(1e-8).half().item() == 0.0


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m benchmarks.optimizer_page writes it"
