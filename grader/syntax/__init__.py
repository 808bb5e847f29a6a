"""Compare and judge programs by their syntax trees. Source texts are untrusted, so they are parsed but never run."""
