"""What a worker of the cluster is asked: what it is, and for replays. Bytes come, and bytes go back."""

import json

from distributed import get_worker

from grader.replay.cluster.desk import Desk, Unfit
from grader.replay.cluster.messages import Answer, Job

_DESK = "trainwreck"


async def describe() -> bytes:
    """Return the JSON of two things: what this worker is, and why it can make no replay, or null."""
    desk = await _desk()
    return json.dumps([dict(await desk.description()), await desk.problem()]).encode()


async def replay(job: bytes, subset: bytes = b"", heldout: bytes = b"") -> bytes:
    """Make a replay, with the files of its data set where the harness does not bring them along."""
    desk, address = await _desk(), get_worker().address
    try:
        made = await desk.replay(Job.model_validate_json(job), subset, heldout)
        answer = Answer(address=address, replay=made)
    except (Unfit, OSError) as error:  # on another worker it may well be made
        answer = Answer(address=address, unfit=str(error))
    return answer.model_dump_json().encode()


async def _desk() -> Desk:
    worker = get_worker()
    if _DESK not in worker.plugins:
        await worker.plugin_add(Desk(), name=_DESK, catch_errors=False)
    desk = worker.plugins[_DESK]
    assert isinstance(desk, Desk)
    return desk
