"""The time limits of trials, probes and further runs, in seconds.

The environment variable `TRAINWRECK_PATIENCE` multiplies all of them, for slow machines, and where equal programs must
get equal findings however busy the machine is.
"""

import os


def patient(seconds: float) -> float:
    """Return a time limit for this machine. Raises `ValueError` if the environment variable is no number."""
    return seconds * float(os.environ.get("TRAINWRECK_PATIENCE") or 1)
