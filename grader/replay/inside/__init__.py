"""Scripts that run inside the sandbox. The rest of the grader is not visible there."""

from pathlib import Path

INSIDE = Path(__file__).resolve().parent
