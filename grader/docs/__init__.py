"""Generate pages of the documentation site from the recipes, the checks and the measurements."""
