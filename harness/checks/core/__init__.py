"""Code that all checks use: the subject to measure, the findings to report, and the process that runs checks."""
