"""Judges answers that are one file: each kind of exercise examines a text, and a rubric of its own gives the points."""
