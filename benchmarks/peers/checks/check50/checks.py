"""The exercise `huge_lr` in check50: each function is a check, its docstring what the student reads."""

import json
import sys

import check50

TIMEOUT_SECONDS = 60


@check50.check()
def exists():
    """experiment.py is there"""
    check50.exists("experiment.py")


@check50.check(exists, timeout=TIMEOUT_SECONDS)
def trains():
    """experiment.py trains to the end"""
    check50.include("experiment_run.py", "print_run.py")
    program = check50.run(f"{sys.executable} print_run.py")
    printed = program.stdout(timeout=TIMEOUT_SECONDS)
    if program.exitcode != 0:
        raise check50.Failure(f"the run did not come to its end: {printed.strip()[-300:]}")
    return json.loads(printed.splitlines()[-1])


@check50.check(trains)
def same_checkpoint(run):
    """the run ends with the checkpoint that was handed in"""
    if run["checkpoint_sha256"] != run["reported_sha256"]:
        raise check50.Mismatch(run["reported_sha256"], run["checkpoint_sha256"])


@check50.check(trains)
def recovers(run):
    """the network learns: validation accuracy above 50 %"""
    if not run["final_val_accuracy"] > run["least_accuracy"]:
        raise check50.Failure(f"validation accuracy is {run['final_val_accuracy']:.1%}")
