"""Score a submission: the checks of each criterion, from evidence to points and reasons."""
