import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.made_up_runs import FIXED, change_json, make_workspace, read_lines, seal, write_lines

from harness.checks.core.outcomes import outcomes_of
from harness.errors import UserError
from harness.submission import check
from harness.submission.check import check_workspace, render_checks
from harness.submission.check_run import CheckItem
from harness.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "work")


def copy_of(workspace: Workspace, scratch: Path) -> Callable[[str], Path]:
    """Return a replay that gives the bytes in the workspace, as a reproducible experiment does."""
    for run in ("broken", "fixed"):
        shutil.copytree(workspace.run_folder(run), scratch / run)
    return lambda run: scratch / run


def failures(items: list[CheckItem]) -> dict[str, str]:
    return {item.id: item.message for item in items if item.outcome != "passed"}


def test_good_work_passes_every_check(workspace: Workspace, tmp_path: Path) -> None:
    items = check_workspace(workspace, copy_of(workspace, tmp_path / "again"))
    assert failures(items) == {}
    of_run, of_report = "files size checksum provenance log diagnostics", "length parts snippet"
    assert [item.id for item in items] == [
        *(f"{run}: {name}" for run in ("broken", "fixed") for name in of_run.split()),
        "experiment: verified", "experiment: edited", "archive: size", "archive: commands",
        "report: front matter", "report: diagnosis 1",
        "report: ruled out 1", "report: ruled out 2", "report: evidence 1", "report: evidence 2",
        *(f"report: {name}" for name in of_report.split()), "broken: repeats", "fixed: repeats",
    ]  # fmt: skip


Damage = Callable[[Workspace], object]


def edit_file(name: str, text: str) -> Damage:
    return lambda workspace: (workspace.run_folder("fixed") / name).write_text(text)


def remove_file(name: str) -> Damage:
    return lambda workspace: (workspace.run_folder("fixed") / name).unlink()


def edit_json(name: str, **changes: object) -> Damage:
    return lambda workspace: change_json(workspace.run_folder("fixed") / name, **changes)


def change_records(change: Callable[[list[Any]], object]) -> Damage:
    def edit(workspace: Workspace) -> None:
        records = read_lines(workspace, "fixed")
        change(records)
        write_lines(workspace, "fixed", records)

    return edit


def edit_log(line: int, **changes: object) -> Damage:
    return change_records(lambda records: records[line].update(changes))


def drop_line(line: int) -> Damage:
    return change_records(lambda records: records.pop(line))


VERIFY = r"make verify BREAK=huge_lr WORK=\S+ makes the run"
META = "checkpoint.pt.meta.json"


@pytest.mark.parametrize(
    ("damage", "item", "message"),
    [
        (remove_file("result.json"), "files", "no finished run in .*fixed: make verify BREAK=huge_lr WORK"),
        (remove_file("run.html"), "files", f"has no run.html: {VERIFY}"),
        (edit_file("checkpoint.pt", "other"), "checksum", "checkpoint.pt.sha256 does not contain the SHA-256 .*:"
            f" {VERIFY}"),
        (edit_json(META, recipe="loss_sum"), "provenance", "recipe is 'loss_sum'"),
        (edit_json(META, command=None), "provenance", "has no key command"),
        (edit_file(META, "[" * 9999), "provenance", "is not JSON"),
        (edit_file("metrics.log", "{}\n{"), "log", r"metrics\.log, line 2 is not a record"),
        (edit_file("metrics.log", ""), "log", "ends in the middle of epoch 0"),
        (drop_line(3), "log", "line 4 has step 4 instead of step 3"),
        (drop_line(-1), "log", "ends in the middle of epoch 1"),
        (edit_log(2, loss=None), "diagnostics", "step 2: no loss"),
        (edit_log(2, grad_mean={"1.weight": 0.1}), "diagnostics", "the gradient mean of a parameter is missing"),
        (edit_log(2, loss="high"), "log", "line 3 is not a record of a run .'loss' is not a number"),
        (edit_log(6, val_accuracy=None, val_loss=None), "diagnostics", "epoch 0: validation loss or"),
    ],
)  # fmt: skip
def test_a_damaged_run_is_found(workspace: Workspace, damage: Damage, item: str, message: str) -> None:
    damage(workspace)
    found = failures(check_workspace(workspace))
    assert re.search(message, found[f"fixed: {item}"])
    assert not any(name.startswith("broken") for name in found)


def test_an_experiment_edited_after_its_run_is_found(workspace: Workspace) -> None:
    workspace.experiment.write_text(FIXED + "# later\n")
    assert list(failures(check_workspace(workspace))) == ["experiment: verified"]
    workspace.experiment.unlink()
    assert list(failures(check_workspace(workspace))) == ["experiment: verified"]


def test_a_debugger_that_was_left_in_the_experiment_is_found(workspace: Workspace) -> None:
    source = workspace.experiment.read_text() + "\n\ndef unused():\n    breakpoint()\n"
    workspace.experiment.write_text(source)
    (workspace.run_folder("fixed") / "experiment.py").write_text(source)
    seal(workspace.run_folder("fixed"))
    found = failures(check_workspace(workspace))
    assert list(found) == ["experiment: debugger"]
    line = source.count("\n")
    assert f"line {line} opens the debugger, but grading has no terminal" in found["experiment: debugger"]


@pytest.mark.parametrize(("comment", "message"), [("", "you have not changed"), ("# why\n", "comments and formatting")])
def test_an_experiment_that_was_not_edited_is_found(workspace: Workspace, comment: str, message: str) -> None:
    source = workspace.broken_source() + comment
    workspace.experiment.write_text(source)
    (workspace.run_folder("fixed") / "experiment.py").write_text(source)
    seal(workspace.run_folder("fixed"))
    found = failures(check_workspace(workspace))
    assert list(found) == ["experiment: edited"] and message in found["experiment: edited"]


def edit_report(workspace: Workspace, old: str, new: str) -> dict[str, str]:
    text = workspace.report.read_text()
    assert old in text
    workspace.report.write_text(text.replace(old, new))
    return failures(check_workspace(workspace))


def test_a_cited_number_that_is_not_in_the_log_is_shown_beside_it(workspace: Workspace) -> None:
    cited = "run: broken, signal: loss, step: {}, value: {}".format
    first, second = (read_lines(workspace, "broken")[step]["loss"] for step in (0, 1))
    found = edit_report(workspace, cited(0, f"{first:.3f}"), cited(0, 7.5))
    assert list(found) == ["report: evidence 1"]
    cites = f"cites loss at step 0 of the broken run, but there the log has {first:.6g}, not 7.5"
    assert cites in found["report: evidence 1"]
    far = edit_report(workspace, cited(0, 7.5), cited(99, 7.5))
    assert "no loss at step 99: it has values from 0 to 11" in far["report: evidence 1"]
    before = edit_report(workspace, cited(99, 7.5), cited(0, second))
    assert (
        "The step or epoch just before or after has your value: count steps and epochs from 0"
        in before["report: evidence 1"]
    )


@pytest.mark.parametrize(
    ("old", "new", "item", "message"),
    [
        ("run: fixed", "run: broken", "evidence of fixed", "cites no value of the fixed run"),
        ("too large.", "word " * 500, "length", "but 500 are allowed"),
        ("```\n", "", "snippet", "no line of a log: paste lines"),
        ("cause: huge_lr", "cause: huge_lrs", "diagnosis 1", "no cause 'huge_lrs': did you mean huge_lr?"),
        ("where: build_optimizer", "where: build_optimiser", "diagnosis 1", "did you mean build_optimizer?"),
        ("step: 1, value: ", "step: 0, value: 2.3}  # ", "diagnosis 1", "has nearly the same value there"),
        ("cause: loss_sum", "cause: huge_lr", "ruled out 1", "is also your diagnosis"),
        ("cause: loss_sum", "cause: double_softmax", "ruled out 1", "which does not rule out double_softmax: cite"),
        (
            "cause: loss_sum",
            "cause: forgotten_eval",
            "ruled out",
            "must rule out two causes that are not your diagnosis",
        ),
        ("# Fix\n", "", "parts", "write symptom, root cause, fix, verification"),
        ("too large.", "![plot](plot.png)", "snippet", "has the picture plot.png, but your instructor will not see it"),
        ("cause: huge_lr", "cause:", "front matter", "line 3, diagnosis 1: `cause` is not filled in"),
    ],
)
def test_an_imperfect_report_is_found(workspace: Workspace, old: str, new: str, item: str, message: str) -> None:
    assert message in edit_report(workspace, old, new)[f"report: {item}"]


def test_who_finds_nothing_wrong_rules_out_four_areas(workspace: Workspace) -> None:
    workspace.experiment.write_text(workspace.broken_source())
    text = workspace.report.read_text()
    begin, end = text.index("  - cause: huge_lr"), text.index("evidence:")
    entries = ["blank_pixels, check: data, outcome: sound", "loss_sum, check: loss_form, outcome: agrees"]
    entries += [f"{cause}, signal: loss, step: 0, value: 2.300" for cause in ("huge_lr", "missing_zero_grad")]
    for chosen, said in (
        (entries[:3], "must rule out causes from 4 different areas, but names only 3"),
        (
            [entries[0], *entries[2:], "label_noise, signal: loss, step: 0, value: 2.300"],
            "must rule out causes from 2 areas by",
        ),
        (entries, ""),
    ):
        rivals = "".join(f"  - {{cause: {entry}}}\n" for entry in chosen)
        workspace.report.write_text(f"{text[:begin]}  - cause: healthy\nruled_out:\n{rivals}{text[end:]}")
        found = failures(check_workspace(workspace)).get("report: ruled out", "")
        assert said in found and bool(said) == bool(found)


def test_no_message_knows_the_answer(workspace: Workspace) -> None:
    assert edit_report(workspace, "cause: huge_lr", "cause: label_permute") == {}


@pytest.mark.parametrize(
    ("check", "found", "message"),
    [
        ("loss-form", "agrees", None),
        ("loss_form", "grows", "says that the check loss-form finds agrees, but it finds grows"),
        ("loss_from", "agrees", "no check 'loss_from': did you mean loss_form?"),
    ],
)
def test_a_check_that_is_cited_is_made(workspace: Workspace, check: str, found: str, message: str | None) -> None:
    second = f"{{cause: loss_sum, check: {check}, outcome: agrees}}"
    open_items = edit_report(workspace, "{cause: loss_sum, signal: loss, step: 0, value: 2.300}", second)
    assert "make check" in open_items["report: ruled out 1"], "the files alone do not tell"

    def outcomes(names: Sequence[str]) -> Mapping[str, str]:
        return dict.fromkeys(names, found)

    made = failures(check_workspace(workspace, outcomes=outcomes))
    if message is None:
        assert made == {}
    else:
        assert message in made["report: ruled out 1"]


def test_a_check_whose_outcome_the_seed_decides_stays_open(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cited = "{cause: loss_sum, check: loss_form, outcome: agrees}"
    edit_report(workspace, "{cause: loss_sum, signal: loss, step: 0, value: 2.300}", cited)
    recorded = {check: found for check, found in outcomes_of("huge_lr").items() if check != "loss_form"}
    monkeypatch.setattr(check, "outcomes_of", lambda recipe: recorded)
    made = {item.id: item for item in check_workspace(workspace, outcomes=lambda names: dict.fromkeys(names, "agrees"))}
    item = made["report: ruled out 1"]
    assert item.outcome == "could not judge" and "depends on the seed: cite another check" in item.message


def replace_in_log(old: str, new: str) -> Damage:
    def edit(workspace: Workspace) -> None:
        log = workspace.run_folder("fixed") / "metrics.log"
        log.write_bytes(log.read_bytes().replace(old.encode(), new.encode()))

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edit_log(3, loss=9.0), r"metrics\.log, line 4 \(step 3\): loss is 9\.0, but .* when the run is made again"),
        (edit_log(3, activations={"first": {"mean": "NaN"}}), r"\(step 3\): activations\.first\.mean is nan"),
        (edit_log(6, val_loss="Infinity"), r"line 7 \(epoch 0\): val_loss is inf, but"),
        (drop_line(-1), "has 13 lines, but 14 when"),
        (edit_file("checkpoint.pt", "x"), "checkpoint.pt differs when"),
        (replace_in_log(": ", ":"), "step 0.* is written differently"),
        (replace_in_log("\n", "\r\n"), "written differently"),
        (replace_in_log('}\n{"epoch": 1, ', '} {"epoch": 1, '), "line 13 is not the record"),
    ],
)
def test_a_run_edited_afterwards_does_not_repeat(
    workspace: Workspace, tmp_path: Path, edit: Damage, message: str
) -> None:
    replay = copy_of(workspace, tmp_path / "again")
    edit(workspace)
    item = next(item for item in check_workspace(workspace, replay) if item.id == "fixed: repeats")
    assert item.outcome == "failed"
    assert re.search(message, item.message)
    assert re.search(VERIFY, item.message)


def test_another_machine_is_no_ones_fault(workspace: Workspace, tmp_path: Path) -> None:
    replay = copy_of(workspace, tmp_path / "again")
    edit_log(3, loss=9.0)(workspace)
    edit_json("checkpoint.pt.meta.json", platform_class={"architecture": "aarch64"})(workspace)
    item = check_workspace(workspace, replay)[-1]
    assert (item.outcome, "made with another platform_class" in item.message) == ("could not judge", True)


def test_a_replay_that_a_user_must_fix_could_not_be_judged(workspace: Workspace) -> None:
    def full_disk(run: str) -> Path:
        raise UserError("No space left on device: free some space.")

    items = check_workspace(workspace, full_disk)[-2:]
    assert [item.outcome for item in items] == ["could not judge"] * 2
    assert "free some space" in items[0].message


def test_a_comment_in_an_experiment_that_is_named_healthy_is_no_failure(workspace: Workspace) -> None:
    begin, end = (workspace.report.read_text().index(key) for key in ("  - cause:", "ruled_out:"))
    text = workspace.report.read_text()
    workspace.report.write_text(f"{text[:begin]}  - cause: healthy\n{text[end:]}")
    for source, outcome in ((workspace.broken_source(), "passed"), (FIXED, "could not judge")):
        workspace.experiment.write_text(source)
        item = next(item for item in check_workspace(workspace) if item.id == "report: diagnosis 1")
        assert item.outcome == outcome
    assert "comments and prints cost no points, but any other edit does" in item.message


def test_an_empty_workspace_can_be_checked(workspace: Workspace) -> None:
    shutil.rmtree(workspace.folder / "runs")
    found = failures(check_workspace(workspace, lambda run: Path()))
    assert "make exercise BREAK=huge_lr" in found["broken: files"]
    assert {"fixed: files", "experiment: verified", "report: evidence 1", "fixed: repeats"} <= set(found)


def test_every_item_is_a_line_without_markup() -> None:
    lines = render_checks([
        CheckItem("a", "passed", "fine"),
        CheckItem("b", "failed", "[red]not markup[/red]"),
        CheckItem("c", "could not judge", "open"),
    ]).plain.splitlines()  # fmt: skip
    assert lines == [
        "passed  a  fine",
        "failed  b  [red]not markup[/red]",
        "open    c  open",
        "",
        "1 passed, 1 failed, 1 could not judge.",
    ]
