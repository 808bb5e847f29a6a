"""The commands of the checks, and what they show on a terminal, in a page and as JSON."""
