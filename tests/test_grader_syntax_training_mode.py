"""The mode that `evaluate` leaves the network in is free; the mode that it evaluates in is not."""

import ast

import pytest

from grader.syntax.training_mode import without_mode_restored


def evaluate(*lines: str) -> str:
    body = "\n".join(f"    {line}" for text in lines for line in text.splitlines())
    return ast.unparse(ast.parse(f"def evaluate(model, inputs, labels):\n{body}"))


EVALUATED = "model.eval()\nouts = model(inputs)"


@pytest.mark.parametrize(
    "restored",
    ["model.train()", "model.train(True)", "model.train(mode=before)", "if before:\n    model.train()"],
)
def test_the_mode_is_put_back_for_nothing(restored: str) -> None:
    whole = ast.parse(evaluate(EVALUATED, restored, "return outs"))
    assert ast.unparse(without_mode_restored(whole)) == evaluate(EVALUATED, "return outs")


@pytest.mark.parametrize(
    "text",
    [
        "model.train()\nouts = model(inputs)\nreturn outs",
        "model.eval()\nmodel.train()\nreturn model(inputs)",
        "model.train()\nreturn 1",
        f"{EVALUATED}\nmodel.train(False)\nreturn outs",
        f"{EVALUATED}\nother.train()\nreturn outs",
        f"{EVALUATED}\nif act():\n    model.train()\nreturn outs",
        f"{EVALUATED}\nmodel.train(act())\nreturn outs",
    ],
)
def test_what_the_evaluation_may_depend_on_stays(text: str) -> None:
    assert ast.unparse(without_mode_restored(ast.parse(evaluate(text)))) == evaluate(text)


def test_without_an_evaluation_nothing_changes() -> None:
    for text in ("x = 1", "def evaluate():\n    return 1"):
        assert ast.unparse(without_mode_restored(ast.parse(text))) == text
