"""The exercises with a broken training run: recipes, cases and mysteries, and functions that find them by name."""
