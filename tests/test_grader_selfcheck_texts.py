"""The part `texts` on a recipe's real logs: what disagrees is found, what waits is told apart, held back is apart."""

import dataclasses

import pytest
from explanations import whole_log

from grader.score.solutions import Label, load_texts
from grader.score.verdict import lost, open_check
from grader.selfcheck.texts import (
    ScoredText,
    hollow_above_vague,
    judged_section,
    rank_agreement,
    score_texts,
)
from harness.recipe import load_recipe


@pytest.fixture(scope="module")
def scored() -> list[ScoredText]:
    """The first text of huge_lr with each of these labels, of those that rules may be made by."""
    texts = [text for text in load_texts("huge_lr") if not text.held_back]
    own = list(score_texts(load_recipe("huge_lr"), texts, whole_log("huge_lr"), whole_log("digits_mlp")))
    labels: tuple[Label, ...] = ("excellent", "clumsy", "vague", "wrong cause", "keyword list")
    return [first(own, label) for label in labels]


def labelled(item: ScoredText, label: Label, **changes: object) -> ScoredText:
    return dataclasses.replace(item, text=item.text.model_copy(update={"label": label, **changes}))


def first(scored: list[ScoredText], label: Label) -> ScoredText:
    return next(item for item in scored if item.text.label == label)


def test_texts_that_agree_do_so_in_their_order_too(scored: list[ScoredText]) -> None:
    section = judged_section(scored)
    assert section.disagreements == ()
    assert "open 5 of 5 agree, 0 wait" in section.figures
    agreement = rank_agreement(scored)
    assert agreement is not None
    assert agreement > 0.9


def test_a_wrong_label_is_found_and_named(scored: list[ScoredText]) -> None:
    wrong = labelled(first(scored, "excellent"), "vague")
    section = judged_section([wrong if item.text.id == wrong.text.id else item for item in scored])
    assert f"huge_lr {wrong.text.id} (vague): 15 points, not 0 to 7" in section.disagreements
    assert [row.cells[1] for row in section.tables[0].rows if not row.agrees] == [wrong.text.id]


def test_what_waits_is_neither_agreement_nor_disagreement(scored: list[ScoredText]) -> None:
    waiting = dataclasses.replace(
        first(scored, "clumsy"), checks=(open_check("cause", "t", 6, "Which one?"),)
    )
    section = judged_section([waiting])
    assert "open 0 of 1 agree, 1 wait for the instructor (1 of them right)" in section.figures
    assert section.disagreements == ()
    assert section.notes == (f"huge_lr {waiting.text.id} (clumsy) waits for the instructor: Which one?",)
    meant = labelled(waiting, "open")
    assert "open 1 of 1 agree, 0 wait" in judged_section([meant]).figures


def test_held_back_texts_have_figures_of_their_own(scored: list[ScoredText]) -> None:
    hidden = labelled(first(scored, "wrong cause"), "excellent", held_back=True, id="hidden")
    section = judged_section([*scored, hidden])
    assert f"open {len(scored)} of {len(scored)} agree" in section.figures
    assert "held back 0 of 1 agree, 0 wait" in section.figures


def test_an_order_that_does_not_agree_is_a_disagreement(scored: list[ScoredText]) -> None:
    best, worst = first(scored, "excellent"), first(scored, "keyword list")
    turned = [labelled(best, "keyword list"), labelled(worst, "excellent")]
    assert rank_agreement(turned) == pytest.approx(-1.0)
    said = "the rank agreement of the open texts is -1.000, below 0.9"
    assert said in judged_section(turned).disagreements


def test_no_list_may_earn_more_than_the_poorest_vague_text(scored: list[ScoredText]) -> None:
    assert list(hollow_above_vague(scored)) == []
    vague, hollow = first(scored, "vague"), first(scored, "keyword list")
    poor = dataclasses.replace(vague, checks=(lost("parts", "t", 2, "no", "do", points=1.0),))
    rich = dataclasses.replace(hollow, checks=(lost("parts", "t", 3, "no", "do", points=2.0),))
    assert list(hollow_above_vague([poor, rich])) == [
        f"huge_lr {hollow.text.id} (keyword list): 2 points, and a vague honest text has 1"
    ]
    assert len(judged_section([poor, rich]).disagreements) == 2  # the order, too
    other = dataclasses.replace(rich, recipe="loss_sum")
    assert list(hollow_above_vague([poor, other])) == []
