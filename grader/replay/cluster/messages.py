"""What travels between the grader and a worker: two records, each as the bytes of its JSON."""

from dataclasses import asdict

from pydantic import JsonValue

from grader.replay.engines import Engine
from grader.replay.replay import Replay
from grader.replay.requests import Request
from grader.score.evidence import recipe_of
from grader.score.verdict import Model
from harness.run.settings import RunSettings


class Job(Model):
    """A replay to make.

    key: Dask's name for the task. record: where the scheduler keeps who began this replay. fingerprint: of what a
    worker must be (`grader.replay.cluster.description`).
    """

    key: str
    record: tuple[str, str]
    fingerprint: str
    engine: Engine
    recipe: str
    settings: dict[str, JsonValue]
    source: str
    tree: str
    trusted: bool
    repetition: int

    def request(self) -> Request:
        """Return the request that it was made of."""
        settings = RunSettings(**self.settings)  # type: ignore[arg-type]
        return Request(
            recipe_of(self.recipe), settings, self.source, self.tree, self.trusted, self.repetition
        )


def job_of(request: Request, *, key: str, session: str, fingerprint: str, engine: Engine) -> Job:
    """Return what a worker is sent for a request."""
    return Job(
        key=key,
        record=(session, request.text_key),
        fingerprint=fingerprint,
        engine=engine,
        recipe=request.recipe.id,
        settings=asdict(request.settings),
        source=request.source,
        tree=request.tree,
        trusted=request.trusted,
        repetition=request.repetition,
    )


class Answer(Model):
    """What the worker at an address sends back: the replay, or why it can make none any more."""

    address: str
    replay: Replay | None = None
    unfit: str = ""
