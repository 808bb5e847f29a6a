"""A course to grade: hundreds of students, every recipe, made from a seed."""
