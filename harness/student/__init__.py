"""What a student does: start an exercise, verify, ask for a hint, check, hand in."""
