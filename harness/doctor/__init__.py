"""Find out whether this machine computes the same bytes as other machines, by comparing digests with a table."""
