"""`grader selfcheck` proves every recipe both ways, and the grader on known edits; `grader new-recipe` writes one."""
