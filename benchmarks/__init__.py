"""Benchmarks: the harness and the grader, a whole class, and other grading tools."""
