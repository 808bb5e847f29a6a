"""The commands for students: start an exercise, verify a fix, get a hint, check the work, and hand it in."""
