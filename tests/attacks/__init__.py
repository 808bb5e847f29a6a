"""The red team: attacks on the grader. `make redteam` scores each attack with the real `grader score`."""
