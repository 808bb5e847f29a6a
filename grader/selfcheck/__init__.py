"""`grader selfcheck` tests recipes and the grader. `grader new-recipe` and `grader new-experiment` write new ones."""
