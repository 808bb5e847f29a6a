"""Compare and judge programs by their syntax trees. Source texts are untrusted: they are parsed, but never run."""
