"""Measurements of the suite itself: speed, and what healthy bands and guardrails rest on."""
