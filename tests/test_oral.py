"""The oral card: questions about the student's own log. The student's page does not contain them."""

import re
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner
from helpers.grading import evidence
from helpers.made_up_class import make_attachments, make_row

from grader.cli import cli
from grader.report.pages import render_submission
from grader.report.write import write_reports
from grader.score.attachments import Question
from grader.score.oral import oral_card
from grader.score.verdict import Scores
from harness.recipes.catalogue import load_recipe

RECIPE = "broadcast_loss"


def test_questions_are_about_the_log_and_the_edit_and_have_answers() -> None:
    honest = evidence(RECIPE)
    card = oral_card(honest)
    assert card == oral_card(honest)
    asks = " ".join(one.asks for one in card)
    step = int(re.findall(r"At step (\d+)", asks)[0])
    (record,) = [one for one in honest.fixed.records() if one.get("step") == step and "loss" in one]
    assert f"{record['loss']:.6g}"[:6] in card[0].answer
    assert "compute_loss" in asks, "the function that was changed"
    assert load_recipe(RECIPE).cause.rstrip(".")[1:] in card[1].answer
    assert "The cause is in compute_loss." in card[1].answer
    assert len(card) >= 4


def test_who_changed_nothing_is_asked_about_the_evidence() -> None:
    untouched = evidence(RECIPE, load_recipe(RECIPE).broken_source())
    assert any("You changed nothing" in one.asks for one in oral_card(untouched))
    assert oral_card(replace(untouched, fixed=untouched.fixed.model_copy(update={"status": "TO"}))) == ()


def test_who_changed_another_place_is_told_where_the_cause_is() -> None:
    source = (
        load_recipe(RECIPE).broken_source().replace("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=True)")
    )
    card = oral_card(evidence(RECIPE, source))
    (about_edit,) = [one for one in card if "You changed train_step" in one.asks]
    assert about_edit.answer.endswith("The cause is in compute_loss.")
    assert not any("put the wrong line back" in one.asks for one in card)


def test_a_students_page_has_no_question(tmp_path: Path) -> None:
    row = make_row("ada_steep", "ada", "steep", {})
    attachments = replace(
        make_attachments(row.submission), questions=(Question(asks="Why <so>?", answer="Because & so."),)
    )
    assert "Why &lt;so&gt;?" in render_submission(row, attachments)
    out = tmp_path / "reports"
    write_reports(Scores(provenance={}, submissions=(row,)), {row.submission: attachments}, out)
    assert "Ask in person" in (out / "ada_steep.html").read_text()
    assert CliRunner().invoke(cli, ["export", "--format", "pages", "--out", str(out)]).exit_code == 0
    page = (out / "export/pages/ada.html").read_text()
    assert "Ask in person" not in page and "Because" not in page
    assert "Ask for a second look" in page
