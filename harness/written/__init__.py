"""Exercises in which students write a file instead of fixing a run: derivations and the decision tree."""
