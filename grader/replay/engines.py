"""The names of the two ways to run an experiment in the sandbox (`grader.replay.sandboxes`)."""

from typing import Literal, get_args

Engine = Literal["warm", "fresh"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
