"""A course: kits, demo, an instructor's decisions."""
