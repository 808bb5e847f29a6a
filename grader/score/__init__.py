"""The checks of each criterion: from evidence to points, with the words that decided."""
