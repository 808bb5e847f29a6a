"""What of the harness no student may see: a kit is made without it, and the sandbox hides it."""

from pathlib import Path

# Below harness/; a folder ends in a slash.
KEPT_BACK = (
    "experiments/",  # the healthy experiments
    "probes.py",  # one for each cause: a student would only have to try them
)
# A replay calls the probes in the process of the experiment, which could read them there whatever was hidden.
# They say how a mechanism is measured; not which one an exercise breaks, nor how.
_CALLED_IN_A_REPLAY = "probes.py"


def hidden_of_harness(harness: Path) -> list[Path]:
    """Return the files and folders of the harness that a sandboxed process must not see."""
    hidden = [harness / name for name in KEPT_BACK if name != _CALLED_IN_A_REPLAY]
    # What Python made of a file lies beside it, and can be read back.
    compiled = {path.parent / "__pycache__" for path in hidden if path.suffix == ".py"}
    return [*hidden, *sorted(compiled)]
