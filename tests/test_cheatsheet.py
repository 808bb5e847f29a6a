"""The data of the cheat sheet: its formulas run beside PyTorch's optimizers, and its numbers are computed again."""

import math
import shutil
from pathlib import Path

import pytest
import torch

from grader.docs.cheatsheet import DATA, PARTS, Optimizer, load_sheet, print_pdf, render_html, render_part, with_part
from grader.docs.pages import DOCS
from harness.checks import check_names
from harness.errors import UserError
from harness.recipes.recipe import recipe_ids

SHEET = load_sheet()


def step_by_formula(one: Optimizer, settings: dict[str, float], gradients: list[float]) -> float:
    """Return the parameter after one step for each gradient, by the lines of the sheet; it begins at 1."""
    names: dict[str, float] = {"p": 1.0, **dict.fromkeys(one.state, 0.0), **settings}
    for t, gradient in enumerate(gradients, start=1):
        names |= {"g": gradient, "t": t}
        for line in one.update:
            exec(line, names)
    return names["p"]


@pytest.mark.parametrize("one", SHEET.optimizer, ids=lambda one: one.name)
def test_the_formulas_and_defaults_are_those_that_pytorch_uses(one: Optimizer) -> None:
    parameter = torch.ones(1, dtype=torch.float64, requires_grad=True)
    kind = getattr(torch.optim, one.torch)
    known = kind([parameter]).defaults
    for name, value in one.defaults.items():
        assert known[name] == (tuple(value) if isinstance(value, list) else value)
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in one.usual.items()}
    optimizer = kind([parameter], **(options | {"lr": 0.02, "weight_decay": 0.3}))
    gradients = [0.5, -2.0, 0.25, 1.0]
    for gradient in gradients:
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
    used = optimizer.param_groups[0]
    settings = {name: used[name] for name in ("lr", "weight_decay", "momentum", "alpha", "eps") if name in used}
    if "betas" in used:
        settings["beta1"], settings["beta2"] = used["betas"]
    assert step_by_formula(one, settings, gradients) == pytest.approx(parameter.item(), abs=1e-12)


def test_each_number_is_computed_again() -> None:
    for one in SHEET.number:
        values = eval(one.python, {"math": math, "torch": torch})
        shown = [float(text) for text in one.value.split(",")]
        assert len(shown) == len(values)
        for text, value in zip(one.value.split(", "), values, strict=True):
            digits = len(text.partition("e")[0].replace(".", "").lstrip("0"))
            assert float(f"{value:.{digits}g}") == pytest.approx(float(text), rel=1e-9), one.name


def test_the_sheet_names_only_exercises_and_checks_that_exist() -> None:
    assert {name for one in SHEET.optimizer for name in one.exercise} <= set(recipe_ids())
    known = {name.replace("_", "-") for name in check_names()} | {"triage"}
    assert {one.command for one in SHEET.symptom} <= known


@pytest.mark.parametrize("page", PARTS)
def test_a_page_shows_the_data_of_the_sheet(page: str) -> None:
    text, name = (DOCS / page).read_text(encoding="utf-8"), PARTS[page]
    part = render_part(name, SHEET)
    assert part.rstrip("\n") in text
    assert with_part(text, name, part) == text, "python -m grader.docs.cheatsheet --write"
    assert with_part(text, name, "other") != text


def test_the_pdf_is_one_page(tmp_path: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("needs chromium")
    target = tmp_path / "sheet.pdf"
    print_pdf(render_html(SHEET), target)
    assert target.read_bytes().count(b"/Type /Page\n") == 1


def test_without_a_browser_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install chromium"):
        print_pdf("", tmp_path / "sheet.pdf")


def test_a_word_that_the_sheet_does_not_know_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(DATA.read_text(encoding="utf-8").replace("rates  ", "ratse  ", 1), encoding="utf-8")
    with pytest.raises(UserError, match="ratse"):
        load_sheet(path)
