"""Replays: the grader runs students' experiments again in a sandbox, and caches the results."""
