"""Generate the pages of the documentation site that list recipes, checks and measurements."""
