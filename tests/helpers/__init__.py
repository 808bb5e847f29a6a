"""Helpers for several tests: invented classes and runs, small experiments, readers of pages, marks."""
