"""Processes that train for the self-check: equal bytes in two of them, and a clear end where one fails."""

import os
from pathlib import Path

import pytest

from grader.selfcheck.trial import Trial
from grader.selfcheck.trial_memory import TrialMemory
from grader.selfcheck.trials import repeat_trials, run_trials
from harness.recipe import experiment_source
from harness.run.launch import ChildFault

SHORT = experiment_source("digits_mlp").replace("EPOCHS = 5", "EPOCHS = 1")
EXITS = SHORT.replace("    optimizer.step()\n", "    import os\n    os._exit(0)\n")


def silent(done: int, total: int) -> None:
    pass


@pytest.mark.slow
def test_trials_run_in_processes_of_their_own_and_repeat_in_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[int, int]] = []
    printing = SHORT.replace("    optimizer.step()\n", "    optimizer.step()\n    print('x')\n")
    trials = [
        Trial(printing, "digits", 1, ("learning_rate", "loss_form")),
        Trial(SHORT, "digits", 1),
        Trial(SHORT, "digits", 2),
        Trial(SHORT, "nowhere", 1),
    ]
    memory = TrialMemory(tmp_path / "memory", fresh=False)
    first = run_trials(trials, jobs=1, cache=tmp_path, progress=lambda *now: told.append(now), memory=memory)
    again = repeat_trials(trials, jobs=1, cache=tmp_path, progress=silent, memory=memory)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    loud, plain, other, lost = (first[trial] for trial in trials)
    assert os.getpid() not in {outcome.process for outcome in first.values()}
    assert loud.checks == {"learning_rate": "usual", "loss_form": "agrees"}
    assert again[trials[0]].checks == {}
    assert loud.log_sha256 == plain.log_sha256 != other.log_sha256
    assert loud.checkpoint_sha256 == plain.checkpoint_sha256 != other.checkpoint_sha256
    assert "no data set 'nowhere'" in lost.problem
    assert [first[trial].repeats(again[trial]) for trial in trials] == [True, True, True, False]
    assert not plain.repeats(plain)  # the same process shows nothing
    assert not plain.repeats(again[trials[2]])
    assert {"loss", "step"} <= set(plain.records[0])
    assert "grad_mean" not in plain.records[0]
    # What came to its end is known from now on; what did not is tried again, and nothing else.
    told.clear()
    known = run_trials(trials, jobs=1, cache=tmp_path, progress=lambda *now: told.append(now), memory=memory)
    assert told == [(1, 1)]
    assert {trial: known[trial] for trial in trials[:3]} == {trial: first[trial] for trial in trials[:3]}
    assert "x" in capfd.readouterr().err  # what an experiment prints goes where errors go


@pytest.mark.slow
def test_a_process_that_ends_is_a_fault_of_ours_and_leaves_none_waiting(tmp_path: Path) -> None:
    trials = [Trial(EXITS, "digits", 1), *(Trial(SHORT, "digits", seed) for seed in range(3))]
    with pytest.raises(ChildFault, match="ended before its trial did"):
        run_trials(trials, jobs=2, cache=tmp_path, progress=silent, memory=TrialMemory(tmp_path, fresh=True))
