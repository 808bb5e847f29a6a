"""Read submissions, which may be hostile: parse them in memory, and neither unpack nor run them."""
