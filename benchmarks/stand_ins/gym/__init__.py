"""The old name of gymnasium."""

from gymnasium import *  # noqa: F403
from gymnasium import spaces as spaces
from gymnasium import vector as vector
from gymnasium import wrappers as wrappers
