"""What runs inside the grader's sandbox for the benchmarks, and imports nothing of theirs."""
