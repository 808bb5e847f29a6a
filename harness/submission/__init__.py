"""The submission of an exercise: the student's report, the checks of `make check`, and the tarball."""
