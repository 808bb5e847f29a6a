"""The held-out splits of the embedded data, and the scripts that make all splits; README.md says how."""
