"""Compare and judge programs by their syntax trees. The text is untrusted: it is parsed, never run."""
