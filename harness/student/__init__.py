"""The commands of students: start an exercise, verify, get a hint, check, hand in."""
