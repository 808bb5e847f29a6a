from pathlib import Path

import pytest
from instrument_subjects import mini_subject
from runs import AMP, CHANCE, mini_run

from harness.checks.walk import State, Walk
from harness.files import write_whole
from harness.run.checkpoint import checkpoint_bytes, load_checkpoint
from harness.run.metrics_log import format_record

pytestmark = pytest.mark.usefixtures("torch_as_found")


def walked(walk: Walk) -> list[str]:
    lines = []
    while not walk.over:
        lines.append(format_record(walk.step()))
        if (epoch := walk.end_epoch()) is not None:
            lines.append(format_record(epoch))
    return lines


@pytest.mark.parametrize("source", [CHANCE, AMP], ids=["chance", "scaled"])
def test_a_walk_is_the_run_to_the_byte(source: str, tmp_path: Path) -> None:
    run = mini_run(tmp_path / "run", source)
    with Walk(mini_subject(source), tmp_path) as walk:
        assert "".join(walked(walk)).encode() == run.bytes("metrics.log")


@pytest.mark.parametrize("step", [0, 3, 5, 14])
def test_it_goes_on_from_any_step_as_if_it_had_never_stopped(step: int, tmp_path: Path) -> None:
    subject = mini_subject(CHANCE)
    state: State | None = None
    lines: list[str] = []
    with Walk(subject, tmp_path) as walk:
        while not walk.over:
            if walk.position == step:
                state = walk.state()
                lines = []
            lines.append(format_record(walk.step()))
            if (epoch := walk.end_epoch()) is not None:
                lines.append(format_record(epoch))
    assert state is not None
    # Through a file, as in a reproducer.
    write_whole({tmp_path / "state.pt": checkpoint_bytes(state)})
    with Walk(subject, tmp_path) as again:
        again.restore(load_checkpoint(tmp_path / "state.pt"))
        assert again.position == step
        assert walked(again) == lines


def test_a_state_is_a_copy(tmp_path: Path) -> None:
    with Walk(mini_subject(), tmp_path) as walk:
        before = walk.state()
        kept = checkpoint_bytes(before)
        walk.step()
        assert checkpoint_bytes(before) == kept != checkpoint_bytes(walk.state())
