"""Run experiments again in the sandbox, and cache the results."""
