"""The student's half: broken experiments, the runs, their diagnostics, and the submission."""

__version__ = "0.1.0"
