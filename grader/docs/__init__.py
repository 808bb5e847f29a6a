"""The pages of the site that nobody writes: `mkdocs` makes them from the recipes, the checks and what was measured."""
