"""Decision trees: which check to make first, where each outcome leads, and what to conclude; read, and walked."""
