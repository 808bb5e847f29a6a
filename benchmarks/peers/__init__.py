"""Grades the same ten submissions with this suite and with the tools that people use today."""
