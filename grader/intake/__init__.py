"""Read submissions, which may be hostile: parse the archives in memory, and neither unpack nor run their files."""
