"""Measurements of the suite itself: speed, and the calibration of its recipes."""
