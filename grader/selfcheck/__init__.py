"""`grader selfcheck`: prove every recipe both ways, and the grader on edits whose verdict is known.

For each recipe: broken runs show its symptoms, healthy runs do not, and both repeat to the byte; the checks that the
break trips are those of `solutions/<id>/measured.toml`; known edits get their verdict. For each pair of recipes a check
or a symptom tells them apart. `docs/calibration.md` is the result.
"""
