"""The exercise `huge_lr` in Otter's format of tests that raise."""

from otter.test_files import test_case

OK_FORMAT = False

name = "huge_lr"
points = None

_runs = {}


def fixed_run():
    """Train once for all tests."""
    from experiment_run import run_experiment

    if not _runs:
        _runs["fixed"] = run_experiment()
    return _runs["fixed"]


@test_case(points=4)
def test_same_checkpoint(env):
    """The run ends with the checkpoint that was handed in"""
    from experiment_run import reported_sha256

    assert fixed_run()["checkpoint_sha256"] == reported_sha256()


@test_case(points=6)
def test_recovers(env):
    """The network learns: validation accuracy above 50 %"""
    from experiment_run import LEAST_ACCURACY

    assert fixed_run()["final_val_accuracy"] > LEAST_ACCURACY
