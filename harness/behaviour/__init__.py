"""Measure the behaviour of a program per function, in numbers (`probes`), and compare two programs (`compare`)."""
