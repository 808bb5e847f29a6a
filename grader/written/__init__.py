"""Grade written exercises, in which the student hands in one file."""
