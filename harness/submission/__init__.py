"""Handing in: the student's report, what is checked beforehand, and the tarball."""
