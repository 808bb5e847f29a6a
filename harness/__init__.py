"""The student's part: broken experiments, runs, checks, and submissions."""

__version__ = "0.2.0"
