"""Show the scores as pages, tables, exports and terminal output. No code here changes a score."""
