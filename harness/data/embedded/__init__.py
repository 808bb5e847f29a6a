"""The embedded data, and the scripts that made it; see README.md beside this file."""
