"""The submission: the student's report, the checks before handing in, and the tarball."""
