"""What the syntax tree of an experiment tells. The text is a stranger's: it is parsed, never run."""
