from typing import Any

import pytest

from benchmarks.guardrails import LIMITS, broken_row, first_report, page, reached, sound_row
from harness.run.guardrails import EARLY, RECENT, START


def record(step: int, loss: float = 1.0, norm: float | None = 1.0, var: float = 0.1) -> dict[str, Any]:
    return {"step": step, "loss": loss, "grad_norm": norm, "activations": {"last": {"mean": 0.0, "var": var}}}


CALM = [record(step) for step in range(40)]
EPOCH = {"epoch": 0, "val_loss": 9.0, "val_accuracy": None}


def test_a_calm_run_reaches_its_own_level() -> None:
    found = reached([*CALM, EPOCH])
    assert (found.early_loss, found.later_loss, found.gradient, found.variance) == (1.0, 1.0, 1.0, 0.1)
    assert first_report([*CALM, EPOCH]) is None


def test_the_first_batches_are_apart_from_later_ones() -> None:
    # The median of the last five is 2 from the eighth batch on, and 1 again well before the first batches are over.
    early = [record(step, loss=2.0 if 5 <= step < 10 else 1.0) for step in range(40)]
    assert reached(early).early_loss == 2.0
    late = [record(step, loss=2.0 if 30 <= step < 30 + RECENT else 1.0) for step in range(40)]
    assert (reached(late).early_loss, reached(late).later_loss) == (1.0, 2.0)
    assert EARLY == 20


def test_gradient_and_variance_are_in_the_terms_of_the_rules() -> None:
    rising = [
        record(step, norm=1.0 if step < START else 4.0, var=0.1 if step < 9 else 50.0) for step in range(40)
    ]
    assert (reached(rising).gradient, reached(rising).variance) == (4.0, 50.0)


def test_what_is_just_beyond_a_limit_is_reported_and_what_is_at_it_is_not() -> None:
    for factor, spoke in ((3.0, None), (3.1, 32)):
        run = [record(step, loss=factor if step >= 30 else 1.0) for step in range(40)]
        assert reached(run).later_loss == pytest.approx(factor)
        assert first_report(run) == spoke


def test_a_row_has_the_most_of_its_runs() -> None:
    worse = [record(step, norm=1.0 if step < START else 20.0) for step in range(40)]
    assert sound_row("mlp", [CALM, worse]) == "| mlp | 2 | 1 | 1 | 20 | 0.1 | 1 |"
    assert broken_row("huge_lr", [CALM, worse]) == "| huge_lr | 2 | 1 | 14 to 14 |"
    assert broken_row("label_permute", [CALM]) == "| label_permute | 1 | 0 | - |"


def test_the_page_has_its_limits() -> None:
    text = page([sound_row("mlp", [CALM])], [broken_row("huge_lr", [CALM])])
    assert LIMITS[:3] == ("6", "3", "10")
    columns = {line.count("|") for line in text.splitlines() if line.startswith("|") and "mlp" in line}
    assert columns == {line.count("|") for line in text.splitlines() if line.startswith("| *limit*")}
