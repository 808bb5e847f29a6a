"""Benchmarks: the harness and the grader, a whole class, checks on recipes and on public bug reports."""
