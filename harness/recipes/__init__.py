"""Recipes, cases and mysteries, and how to find them by their names."""
