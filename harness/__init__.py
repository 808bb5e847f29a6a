"""The student's half: broken experiments, the runs, their diagnostics, and the submission."""
