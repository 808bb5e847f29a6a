"""Show the scores as pages, tables, exports and terminal output. The code in this package changes no score."""
