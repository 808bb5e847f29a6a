"""Find out from golden digests whether this machine is in the portable class."""
