"""Run experiments that are ordinary training scripts with their own loops, and record them through hooks of torch."""
