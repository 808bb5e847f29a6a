"""Healthy experiments, one readable file each; recipes break copies of them."""
