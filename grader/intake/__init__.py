"""Takes submissions in: hostile until proven otherwise, read in memory, never unpacked, never run."""

from grader.intake.manifest import Manifest
from grader.intake.rejected import Rejected
from grader.intake.submission import Submission, read_settings, read_submission

__all__ = ["Manifest", "Rejected", "Submission", "read_settings", "read_submission"]
