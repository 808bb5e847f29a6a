"""Scripts that run inside the sandbox, where they see nothing of the grader but themselves."""

from pathlib import Path

INSIDE = Path(__file__).resolve().parent
