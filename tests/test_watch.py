import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import edit, start, succeed
from run_files import BROKEN, FIXED, complete_run, make_workspace

import harness.watch
from harness.errors import Stopped, UserError
from harness.summary import Figures
from harness.watch import watch
from harness.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose runs are made up at once: the figures are those of the source's number."""
    made = make_workspace(tmp_path)

    def verify(recipe: str, work: Path, asked: object) -> None:
        source = made.experiment.read_text()
        if "interrupt" in source:
            raise Stopped("Stopped at step 3.")
        if source.count("(") != source.count(")"):
            raise UserError("line 2: '(' was never closed")
        complete_run(made.run_folder("fixed"), "fixed", source)

    monkeypatch.setattr(harness.watch, "verify_exercise", verify)
    return made


@dataclass
class Shown:
    """What one save led to."""

    columns: dict[str, Figures]
    mistake: str | None


def shown_after(workspace: Workspace, *saves: Callable[[], object]) -> list[Shown]:
    """Return what is shown while these are done between two looks."""

    def looks() -> Iterator[None]:
        yield
        for save in saves:
            save()
            yield

    shown: list[Shown] = []
    watch(workspace, lambda _workspace, runs, mistake: shown.append(Shown(runs, mistake)), looks())
    return shown


def test_each_save_is_run_beside_the_run_before(workspace: Workspace) -> None:
    shown = shown_after(
        workspace,
        lambda: workspace.experiment.write_text(FIXED + "# once\n"),
        lambda: workspace.experiment.touch(),
        lambda: workspace.experiment.write_text(FIXED + "# twice\n"),
    )
    assert [list(one.columns) for one in shown] == [
        ["broken", "now"], ["broken", "last", "now"], ["broken", "last", "now"],
    ]  # fmt: skip
    assert shown[2].columns["last"] == shown[1].columns["now"]
    assert all(one.mistake is None for one in shown)


def test_an_untouched_experiment_waits_for_its_first_save(workspace: Workspace) -> None:
    workspace.experiment.write_text(BROKEN)
    complete_run(workspace.run_folder("fixed"), "fixed", BROKEN)
    assert [one.mistake for one in shown_after(workspace)] == [None]


def test_an_edit_that_was_not_run_yet_is_run_at_once(workspace: Workspace) -> None:
    workspace.experiment.write_text(FIXED + "# not run\n")
    (shown,) = shown_after(workspace)
    assert list(shown.columns) == ["broken", "last", "now"]


def test_a_mistake_is_shown_once_and_the_next_save_runs(workspace: Workspace) -> None:
    shown = shown_after(
        workspace,
        lambda: workspace.experiment.write_text(FIXED + "("),
        lambda: None,
        lambda: workspace.experiment.unlink(),
        lambda: workspace.experiment.write_bytes(b"\xff"),
        lambda: workspace.experiment.write_text(FIXED + "# mended\n"),
    )
    assert [one.mistake for one in shown] == [None, "line 2: '(' was never closed", None]
    assert list(shown[1].columns) == ["broken", "last"]
    assert shown[1].columns["last"] == shown[2].columns["last"] == shown[0].columns["now"]


def test_an_interrupt_ends_it(workspace: Workspace) -> None:
    shown = shown_after(
        workspace,
        lambda: workspace.experiment.write_text("interrupt"),
        lambda: pytest.fail("it went on"),
    )
    assert len(shown) == 1


def test_without_a_broken_run_there_is_nothing_to_compare_with(workspace: Workspace) -> None:
    (workspace.run_folder("broken") / "result.json").unlink()
    with pytest.raises(UserError, match="has no finished broken run: make exercise BREAK=huge_lr"):
        shown_after(workspace)


@pytest.mark.slow
def test_the_command_goes_on_after_a_mistake_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    succeed("exercise", "huge_lr", "--epochs", "1", cwd=tmp_path)
    experiment = tmp_path / "work/huge_lr/experiment.py"
    process = start("watch", "huge_lr", cwd=tmp_path)
    said: list[str] = []

    def screen() -> str:
        """Wait for what one save leads to, and return it."""
        assert process.stdout is not None
        said.clear()
        while not said or "Stop with Ctrl-C." not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], said
        return "".join(said)

    first = screen()
    assert "broken" in first and "now" not in first
    edit(experiment, "lr=10.0, momentum", "lr=0.1 momentum")
    second = screen()
    assert "Not run: " in second and "line" in second and "now" not in second
    edit(experiment, "lr=0.1 momentum", "lr=0.1, momentum")
    third = screen()
    assert "now" in third and "fixed: provenance" in third
    assert "lr=0.1, momentum" in (tmp_path / "work/huge_lr/runs/fixed/experiment.py").read_text()
    process.send_signal(signal.SIGINT)
    rest, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, ""), rest
    assert rest.endswith("Stopped watching. Next: make verify BREAK=huge_lr\n")
