"""A student's folder for one exercise, and the stored progress of the student."""
