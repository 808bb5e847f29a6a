"""Grade exercises whose answer is a file."""
