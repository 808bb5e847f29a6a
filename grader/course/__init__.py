"""A course: kits, demo, overrides."""
