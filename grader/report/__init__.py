"""Pure views of scores and exhibits: pages, the gradebook, files for learning platforms, the terminal."""
