"""Benchmarks of the harness, of the grader on a whole class, and of the checks on recipes and public bug reports."""
