"""Scripts that run inside the sandbox, where they see nothing of the grader but themselves."""
