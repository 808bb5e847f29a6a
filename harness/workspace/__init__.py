"""A student's folder for one exercise, and the notes about the student's progress."""
