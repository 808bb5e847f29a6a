"""Run an experiment again in the sandbox, and remember the result."""
