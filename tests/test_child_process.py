import json
import os

from harness.run.child_process import Reporter


def test_a_parent_that_is_gone_ends_the_process_that_trains() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = os.fork()
    if process == 0:
        Reporter(writing).send("progress")
        os._exit(0)
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1


def test_progress_is_reported_now_and_then_and_at_the_end() -> None:
    reading, writing = os.pipe()
    reporter = Reporter(writing)
    for step in range(1, 101):
        reporter.progress(step, 100, float("nan"))
    reporter._pipe.close()
    with os.fdopen(reading) as events:
        steps = [json.loads(line) for line in events]
    assert steps[-1] == {"event": "progress", "step": 100, "steps": 100, "loss": "nan"}
    assert steps[0]["step"] == 1
    assert len(steps) < 20
