"""Healthy experiments, one readable file each. Recipes break copies of them."""
