"""Decision trees are walked with what was recorded, and judged: known answers, evidence, cost, and the recording."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from test_decision_tree import TEXT

from benchmarks.tree_outcomes import FILE, text_of
from benchmarks.tree_page import PAGE, page
from grader.intake.submission import Answer
from grader.replay.replayer import Replayer
from grader.report.submission_page import render_submission
from grader.sandbox import run_in_sandbox
from grader.score.verdict import total_of
from grader.written.answers.examination import Examination
from grader.written.answers.graded import answer_row
from grader.written.answers.known import KnownAnswer, complaint, load_answers, reference
from grader.written.answers.points import load_points, with_points
from grader.written.decision_tree.arrivals import Arrival, arrivals, mean_minutes, share_right
from grader.written.decision_tree.examine import examine_tree
from grader.written.decision_tree.formula import Formula, load_formula
from grader.written.decision_tree.recorded import Recorded, Recording, load_recording
from grader.written.decision_tree.recording import SEEDS, measuring_modules, stale, subjects
from harness.checks import check_names, load_check, run_checks
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids
from harness.run.settings import RunSettings
from harness.written.decision_tree.tree import parse_tree
from harness.written.file_exercise import DecisionTree, load_exercise, stub

EXERCISE = "decision_tree"
NEVER = Replayer(run_in_sandbox, Path("nowhere"))
ANSWERS = load_answers(EXERCISE)


def exercise() -> DecisionTree:
    found = load_exercise(EXERCISE)
    assert isinstance(found, DecisionTree)
    return found


def examined(text: str) -> Examination:
    return examine_tree(exercise(), text, NEVER)


def total(text: str) -> float | None:
    return total_of(with_points(examined(text), EXERCISE))


def solution() -> str:
    return reference(exercise())


# --- known answers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.id)
def test_a_known_answer_loses_what_was_declared(answer: KnownAnswer) -> None:
    text = answer.source(solution())
    assert complaint(answer, examined(text)) == ""
    assert examined(text) == examined(text)


def test_there_are_answers_of_every_kind() -> None:
    assert len({answer.id for answer in ANSWERS}) == len(ANSWERS) >= 20
    assert sum(not answer.loses for answer in ANSWERS) >= 3


def test_the_reference_earns_everything_and_the_untouched_file_nothing() -> None:
    assert total(solution()) == 100
    assert total(stub(exercise())) == 0


def test_what_earns_nothing_earns_nothing_at_all() -> None:
    for answer in ANSWERS:
        if set(answer.loses) == {"form", "conclusions", "cost"}:
            assert total(answer.source(solution())) == 0, answer.id


def test_the_points_of_the_criteria_are_those_of_the_documentation() -> None:
    points = {name: sum(checks.values()) for name, checks in load_points(EXERCISE).items()}
    assert points == {"form": 10, "conclusions": 65, "cost": 25}


# --- the judge, on recordings made up -----------------------------------------------------------------------

FORMULA = Formula(evidence=0.66, slowest=4.0)


def recorded(*rows: tuple[str, Mapping[str, str]]) -> Recording:
    ones = [Recorded(truth=truth, name=truth, seed=0, key="0", outcomes=found) for truth, found in rows]
    return Recording(made_by="a test", experiments=tuple(ones))


def arrived(*rows: tuple[str, Mapping[str, str]]) -> Sequence[Arrival]:
    return arrivals(parse_tree(TEXT), recorded(*rows), FORMULA)


FINE = {"overfit": "reaches", "modes": "agree"}
TWO_MARKS = {"overfit": "reaches", "modes": "unrepeatable"}
WORSE = {"overfit": "diverges"}


def test_a_conclusion_counts_where_nothing_else_comes_to_its_end() -> None:
    found = arrived(("healthy", FINE), ("forgotten_eval", TWO_MARKS), ("huge_lr", WORSE))
    assert [one.verdict for one in found] == ["right"] * 3
    assert share_right(found, ["huge_lr", "forgotten_eval"]) == 1


def test_one_of_two_kinds_that_come_to_one_end_is_guessed() -> None:
    found = arrived(("healthy", FINE), ("huge_lr", WORSE), ("loss_sum", WORSE))
    assert [one.verdict for one in found] == ["right", "a guess", "wrong"]
    assert found[1].others == ("loss_sum",)
    assert share_right(found, ["huge_lr", "loss_sum"]) == 0


def test_many_experiments_of_one_kind_weigh_no_more_than_few_of_another() -> None:
    found = arrived(*[("healthy", FINE)] * 20, ("double_softmax", FINE), ("huge_lr", WORSE))
    assert {one.verdict for one in found if one.experiment.truth == "healthy"} == {"a guess"}


def test_a_stray_seed_takes_nothing_from_the_others() -> None:
    strays = [("loss_sum", WORSE), *[("loss_sum", TWO_MARKS)] * 3]
    found = arrived(("healthy", FINE), *[("huge_lr", WORSE)] * 4, *strays)
    assert share_right(found, ["huge_lr"]) == 1
    assert [one.verdict for one in found[5:]] == ["wrong"] * 4


def test_unknown_is_neither_right_nor_a_reason_against_others() -> None:
    other_mode = {"overfit": "stalls", "modes": "other-mode"}
    found = arrived(("healthy", FINE), ("loss_sum", other_mode), ("huge_lr", WORSE))
    assert [one.verdict for one in found] == ["right", "not concluded", "right"]


def test_the_same_outcomes_by_another_way_are_another_end() -> None:
    # Both see the same evaluation, and what came before tells them apart.
    found = arrived(("healthy", FINE), ("loss_sum", {"overfit": "stalls", "modes": "agree"}))
    assert [one.verdict for one in found] == ["right", "wrong"]


def test_minutes_are_those_of_what_is_right_and_each_kind_weighs_the_same() -> None:
    rows = [("healthy", FINE), ("huge_lr", WORSE), ("huge_lr", WORSE), ("loss_sum", TWO_MARKS)]
    found = arrived(*rows)
    assert mean_minutes(found, found) == (3.5, 3.5)  # (2 + 3) for the sound one, 2 for the rate
    assert mean_minutes(arrived(("loss_sum", WORSE)), arrived(("loss_sum", WORSE))) == (0.0, 0.0)


@pytest.mark.parametrize(("minutes", "share"), [(3, 1), (6, 1), (15, 0.5), (24, 0), (60, 0)])
def test_the_pace_falls_evenly_from_the_references_to_the_slowest(minutes: float, share: float) -> None:
    assert FORMULA.pace(minutes, 6) == share


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        ("evidence = 0.66", "evidence = 0.4", "formula.*evidence"),
        ("slowest  = 4.0", "slowest  = 1.0", "formula.*slowest"),
        ("[formula]", "[formulas]", r"\[formula\] is missing: it holds evidence, slowest"),
        ("breaks  = 50", "breaks  = 51", "add up to 101"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused(find: str, replace: str, said: str, tmp_path: Path) -> None:
    text = (FILE.parent / "rubric.toml").read_text()
    assert text.count(find) == 1
    (tmp_path / EXERCISE).mkdir()
    (tmp_path / EXERCISE / "rubric.toml").write_text(text.replace(find, replace))
    with pytest.raises(UserError, match=said):
        load_formula(EXERCISE, tmp_path)
        load_points(EXERCISE, tmp_path)


# --- the recording ------------------------------------------------------------------------------------------


def test_every_recipe_and_sound_experiments_are_recorded_as_they_are_now() -> None:
    recording = load_recording(EXERCISE)
    assert recording.truths == (*recipe_ids(), "healthy")
    wanted = subjects()
    assert stale(recording, wanted) == [], f"outcomes of before: {recording.made_by}"
    assert len(recording.experiments) == len(wanted)
    checks = {name: {outcome.id for outcome in load_check(name).outcomes} for name in check_names()}
    for one in recording.experiments:
        assert one.outcomes.keys() == checks.keys()
        assert all(outcome in checks[check] for check, outcome in one.outcomes.items())


def test_the_seeds_are_not_those_that_students_are_shown() -> None:
    shown = {load_recipe(id).seed for id in recipe_ids()} | set(range(200))
    assert len(SEEDS) >= 3
    assert not shown & set(SEEDS)
    for truth in recipe_ids():
        assert {one.seed for one in load_recording(EXERCISE).experiments if one.truth == truth} == set(SEEDS)


def test_the_instruments_give_what_was_recorded() -> None:
    recipe = load_recipe("loss_sum")
    one = next(one for one in load_recording(EXERCISE).experiments if one.truth == recipe.id)
    checks = ("overfit", "first_loss", "loss_form", "gradients")
    found = run_checks(recipe.broken_source(), RunSettings(seed=one.seed, dataset=recipe.dataset), checks)
    assert {check: found[check].outcome for check in checks} == {
        check: one.outcomes[check] for check in checks
    }


def test_what_measures_decides_whether_a_recording_is_stale() -> None:
    modules = measuring_modules()
    assert {"harness.checks.overfit", "harness.trainer", "harness.checks.lab.subject"} <= modules
    assert not [
        name for name in modules if name.startswith(("harness.page", "harness.cli", "harness.submission"))
    ]
    recording = load_recording(EXERCISE)
    changed = recording.experiments[0].model_copy(update={"key": "0"})
    told = stale(
        recording.model_copy(update={"experiments": (changed, *recording.experiments[1:])}), subjects()
    )
    assert told == [f"{changed.name}, seed {changed.seed}"]


def test_the_file_is_what_the_command_writes() -> None:
    assert FILE.read_text() == text_of(load_recording(EXERCISE))


@pytest.mark.parametrize("text", ["", "[]", '{"experiments": []}', '{"made_by": 3, "experiments": 4}'])
def test_a_recording_that_cannot_be_used_says_how_it_is_made(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no .*tree_outcomes --write"):
        load_recording(EXERCISE, tmp_path)
    load_recording.cache_clear()
    (tmp_path / EXERCISE).mkdir()
    (tmp_path / EXERCISE / "outcomes.json").write_text(text)
    with pytest.raises(UserError, match=r"cannot be used: .*tree_outcomes --write"):
        load_recording(EXERCISE, tmp_path)


# --- what is shown ------------------------------------------------------------------------------------------


def test_the_page_lists_the_way_of_every_recipe_and_nothing_of_the_student_as_markup() -> None:
    text = solution().replace("check: modes", "check: modes  # <script>alert(1)</script>")
    text = text.replace("nothing that we know holds it up", "<img src=x onerror=alert(2)>")
    answer = Answer("ada_decision_tree", "0" * 64, exercise(), "ada", text, ())
    graded = answer_row(answer, examined(text), sandboxed=True)
    page = render_submission(graded.row, graded.exhibits, title="A tree", provenance={})
    for truth in (*recipe_ids(), "healthy"):
        assert f'<th scope="row">{truth}, ' in page
    assert "overfit: diverges → first_loss: high" in page
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_the_drawn_tree_is_the_method_as_the_checks_have_it_and_no_answer() -> None:
    drawn = PAGE.read_text(encoding="utf-8")
    assert drawn == page()
    assert not [truth for truth in recipe_ids() if truth in drawn]
    for name in check_names():
        assert f'\n    {name}["' in drawn
