"""The queue of cases: what `harness next` draws, the open case, claims, and the certificate of a level."""

import json
import re
from pathlib import Path

import pytest
from helpers.commands import mistake, succeed
from helpers.page_reader import Page

from harness.behaviour.child import behaviour_of
from harness.behaviour.settings import examined_settings
from harness.behaviour.sound import compare
from harness.errors import UserError
from harness.practice.case import claim, read_certificate, read_queue
from harness.recipes import mysteries
from harness.recipes.catalogue import SUITE, is_case, load_recipe
from harness.recipes.mysteries import draw_case, is_hidden, level_of_hidden, load_hidden, mystery_name
from harness.recipes.recipe import LEVELS, KitRecipe, load_recipes
from harness.student import queue as queue_module
from harness.student.attempts import edit_of
from harness.student.certificate import certificate_path
from harness.student.debrief import explain, first_records
from harness.student.goal import programs_of
from harness.student.overview import level_line, status_as_json
from harness.student.queue import CASES_OF_A_LEVEL, PracticeQueue, duration
from harness.workspace.progress import begun_exercises, note_begin, note_progress, note_solved, progress_of
from harness.workspace.workspace import prompt_text

RECIPES = {recipe.id: recipe for recipe in load_recipes()[0]}


def draw_all(level: int, seen: set[str]) -> list[str]:
    """Return every case of a level, in the order of the queue."""
    names: list[str] = []
    while name := draw_case(seen | {*names}, level):
        names.append(name)
    return names


@pytest.fixture(scope="module")
def first_level() -> list[str]:
    return draw_all(1, set())


def solve(work: Path, name: str, causes: tuple[str, ...] = ("huge_lr",)) -> None:
    note_begin(work / name)
    note_solved(work / name, causes, 1)


def test_a_level_holds_each_of_its_faults_once_and_sound_cases(first_level: list[str]) -> None:
    contents = [load_hidden(name).content for name in first_level]
    assert len({*contents}) == len(contents)
    on_level = {id for id, recipe in RECIPES.items() if recipe.goal and recipe.goal.level == 1}
    assert {content[0] for content in contents if content[0] != "healthy"} == on_level
    sound = [load_hidden(name) for name in first_level if load_hidden(name).is_healthy]
    assert any(case.decoy for case in sound) and any(not case.decoy for case in sound)
    assert all(len(case.parts) < 2 for case in map(load_hidden, first_level))


def test_a_name_tells_neither_the_level_nor_the_fault(first_level: list[str]) -> None:
    for name in first_level:
        assert re.fullmatch(r"case-[0-9]{5}", name) and is_case(name)
        case = load_hidden(name)
        said = " ".join((case.title, prompt_text(name), *case.hints))
        assert not [part for part in case.parts if part in said]
    numbers = [int(name[-5:]) for name in first_level]
    others = [name for name in (f"case-{number:05}" for number in range(1, max(numbers))) if name not in first_level]
    assert {level_of_hidden(name) for name in others} == {*range(1, LEVELS + 1)}
    with pytest.raises(UserError, match=r"a case has five digits, as in case-00017"):
        level_of_hidden("case-17")


def test_several_faults_come_from_level_3_on() -> None:
    names = [mystery_name(level, number) for level in range(1, LEVELS + 1) for number in range(1, 61)]
    several = [name for name in names if len(load_hidden(name).parts) > 1]
    assert {level_of_hidden(name) for name in several} == {3, 4, 5}


def test_no_case_repeats_what_the_student_had(first_level: list[str]) -> None:
    had = load_hidden(first_level[0]).parts[0]
    same = next(
        name
        for name in (mystery_name(1, number) for number in range(1, 999))
        if load_hidden(name).content == load_hidden(first_level[0]).content
    )
    for seen in ({had}, {same}, {first_level[0]}):
        assert draw_case(seen, 1) == first_level[1]
    assert draw_case({*first_level}, 1) is None


def test_another_recipe_changes_no_case_that_does_not_draw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"case-{number:05}" for number in range(1, 120)]
    before = {name: load_hidden(name) for name in names}
    monkeypatch.setattr(
        mysteries, "load_recipes", lambda: (tuple(RECIPES[id] for id in RECIPES if id != "huge_lr"), {})
    )
    changed = [name for name in names if load_hidden(name).content != before[name].content]
    assert changed == [name for name in names if "huge_lr" in before[name].parts]


def test_a_level_that_is_used_up_says_where_to_go_on(tmp_path: Path, first_level: list[str]) -> None:
    for name in first_level:
        solve(tmp_path, name)
    with pytest.raises(UserError, match=r"You have had every case of level 1: choose LEVEL=2 \(--level\)"):
        PracticeQueue(tmp_path).draw(1)


def test_the_level_is_the_one_of_the_last_case_until_it_is_complete(tmp_path: Path, first_level: list[str]) -> None:
    assert PracticeQueue(tmp_path).level == 1
    for name in first_level[: CASES_OF_A_LEVEL - 1]:
        solve(tmp_path, name)
    assert (PracticeQueue(tmp_path).level, level_of_hidden(PracticeQueue(tmp_path).draw())) == (1, 1)
    solve(tmp_path, first_level[CASES_OF_A_LEVEL])
    assert (PracticeQueue(tmp_path).level, level_of_hidden(PracticeQueue(tmp_path).draw())) == (2, 2)


def test_a_case_whose_solution_was_seen_first_does_not_count(tmp_path: Path, first_level: list[str]) -> None:
    note_begin(tmp_path / first_level[0])
    note_progress(tmp_path / first_level[0], revealed=True)
    note_solved(tmp_path / first_level[0], ("huge_lr",), 1)
    solve(tmp_path, first_level[1])
    assert [one.name for one in PracticeQueue(tmp_path).solved_on(1)] == [first_level[1]]


def test_a_complete_level_has_a_certificate(tmp_path: Path, first_level: list[str]) -> None:
    for name in first_level[: CASES_OF_A_LEVEL - 1]:
        solve(tmp_path, name, load_hidden(name).causes)
    assert "9 of 10 cases" in level_line(tmp_path, 1, PracticeQueue(tmp_path))
    assert not certificate_path(tmp_path, 1).exists()
    assert read_certificate(tmp_path, 1) is None
    last = first_level[CASES_OF_A_LEVEL]
    solve(tmp_path, last, ("<b>gone</b>",))
    assert f"10 cases, complete: {certificate_path(tmp_path, 1)}" in level_line(tmp_path, 1, PracticeQueue(tmp_path))
    text = certificate_path(tmp_path, 1).read_text()
    assert read_queue(tmp_path, 1)["certificates"] == [1] and read_certificate(tmp_path, 1) == text
    page = Page(text)
    assert "default-src 'none'" in page.policy
    assert "&lt;b&gt;gone" in text and "<b>gone" not in text
    for name in first_level[: CASES_OF_A_LEVEL - 1]:
        assert name in text and all(cause in text for cause in load_hidden(name).causes)


@pytest.mark.parametrize(
    ("minutes", "words"), [(None, ""), (0.2, "1 min"), (59.4, "59 min"), (95, "1 h 35 min"), (5000, "3 days")]
)
def test_a_time_is_told_in_words(minutes: float | None, words: str) -> None:
    assert duration(minutes) == words


def test_a_kit_goes_through_its_own_exercises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "listed_ids", lambda: ["a1", "a2"])
    monkeypatch.setattr(SUITE, "find", lambda name: KitRecipe.model_construct(id=name, pool=()))
    assert PracticeQueue(tmp_path).draw() == "a1"
    note_begin(tmp_path / "a1")
    queue = PracticeQueue(tmp_path)
    case = queue.open_case()
    assert case is not None and case.name == "a1" and case.level is None
    queue.skip()
    queue = PracticeQueue(tmp_path)
    assert (queue.open_case(), queue.draw()) == (None, "a2")
    with pytest.raises(UserError, match="A course kit has no levels"):
        queue.draw(1)
    with pytest.raises(UserError, match="No case is open: remove SKIP=1"):
        queue.skip()
    note_begin(tmp_path / "a2")
    with pytest.raises(UserError, match="You have begun every exercise of this kit"):
        PracticeQueue(tmp_path).draw()


def test_the_first_case_from_the_terminal(tmp_path: Path, first_level: list[str]) -> None:
    work = tmp_path / "work"
    name = first_level[0]
    said = succeed("next", cwd=tmp_path)
    assert f"{name}: What is wrong with this run, if anything?" in said
    assert f"make verify BREAK={name} HEALTHY=1" in said
    said = succeed("next", "--level", "3", cwd=tmp_path)
    assert said.startswith(f"{name} is open, on level 1.") and "make next SKIP=1" in said
    state = json.loads(succeed("status", "--json", cwd=tmp_path))
    assert state["open"] == {"id": name, "level": 1, "state": "begun"}
    assert succeed("status", cwd=tmp_path).startswith(f"{name} is open")
    listed = json.loads(succeed("exercises", "--json", cwd=tmp_path))["exercises"]
    [own] = [row for row in listed if row["hidden"]]
    assert (own["id"], own["state"], own["solved"]) == (name, "begun", None)
    said = succeed("verify", name, "--healthy", cwd=tmp_path)
    assert said.startswith(f"Wrong: something is broken in {name}.")
    assert progress_of(work / name).wrong_claims == 1
    note_solved(work / name, load_recipe(name).causes, 2)
    said = succeed("progress", cwd=tmp_path)
    assert max(map(len, said.splitlines())) <= 80
    assert re.search(rf"^{name} +{load_recipe(name).causes[0]} +.*  3 +0 *$", said, re.MULTILINE)
    assert "Level 1  ██░" in said and said.endswith("Next:\n  make next\n")
    assert f"  {name}  solved  {load_recipe(name).causes[0]}: " in succeed("exercises", cwd=tmp_path)


def test_a_claim_is_for_hidden_exercises(tmp_path: Path) -> None:
    succeed("exercise", "huge_lr", cwd=tmp_path)
    said = mistake("verify", "huge_lr", "--healthy", cwd=tmp_path)
    assert said == "huge_lr has a fault: remove --healthy (HEALTHY=1), which is for hidden exercises."


def test_the_page_has_the_same_queue_and_takes_claims(tmp_path: Path, first_level: list[str]) -> None:
    queue = read_queue(tmp_path, 0)
    assert (queue["level"], queue["solved"], queue["needed"]) == (1, 0, CASES_OF_A_LEVEL)
    assert [one["name"] for one in queue["items"]] == [PracticeQueue(tmp_path).draw()] == first_level[:1]
    sound = next(name for name in first_level if load_hidden(name).content == ("healthy", "digits_mlp"))
    succeed("exercise", sound, "--work", tmp_path, cwd=tmp_path)
    assert claim(sound, tmp_path) == f"Right: nothing is broken in {sound}. It is a healthy program without any change."
    solved = progress_of(tmp_path / sound).solved
    assert solved is not None and (solved.causes, solved.attempts) == (("healthy",), 1)
    assert json.loads(status_as_json(tmp_path))["levels"][0] == {"level": 1, "solved": 1, "needed": CASES_OF_A_LEVEL}
    assert is_hidden(sound) and sound in begun_exercises(tmp_path)


def test_a_fix_is_compared_with_programs_of_the_same_seed() -> None:
    cases = [case for case in (load_hidden(f"case-{number:05}") for number in range(1, 60)) if case.parts]
    assert len({case.seed for case in cases}) > 1
    for case in cases:
        measured = {RECIPES[part].seed for part in case.parts}
        assert {examined_settings(case, case.broken_source()).seed} == measured, case.id


@pytest.mark.slow
def test_the_healthy_program_fixes_a_case_with_another_seed() -> None:
    case = load_hidden("case-00012")
    assert case.seed != RECIPES[case.parts[0]].seed
    programs = programs_of(case)
    assert programs is not None
    settings = examined_settings(case, case.broken_source())
    assert compare(behaviour_of(case.healthy_source(), settings), programs).is_right


def test_the_explanation_of_several_faults_names_each_and_shows_the_whole_fix() -> None:
    name = next(name for name in draw_all(3, set()) if len(load_hidden(name).parts) == 2)
    case = load_hidden(name)
    passages = [*explain(case)]
    causes = [one.heading for one in passages if one.heading.startswith("The cause: ")]
    assert causes == [f"The cause: {id}, {RECIPES[id].cause}" for id in case.parts]
    assert passages[0].text.startswith("These notes describe runs with only one of the faults.")
    assert passages[-1].edit == edit_of(case.broken_source(), case.healthy_source(), ("broken", "reference fix"))
    assert not any(id in one.text for one in passages for id in case.parts if "harness" in one.text)


def test_an_explanation_needs_no_log_of_the_first_run(tmp_path: Path) -> None:
    assert list(first_records(tmp_path)) == []
