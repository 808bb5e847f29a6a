"""Grades decision trees: walks each with recorded outcomes of the instruments, and compares it with the reference."""
