"""Scripts that run inside the sandbox, where the rest of the grader is not visible."""

from pathlib import Path

INSIDE = Path(__file__).resolve().parent
