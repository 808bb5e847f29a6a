"""Commands for authors of exercises: `grader selfcheck`, `grader new-recipe` and `grader new-experiment`.

`grader selfcheck` tests the recipes and the grader. The other two commands write a new recipe or a new experiment.
"""
