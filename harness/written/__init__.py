"""Exercises whose answer is a file: derivations and the decision tree."""
