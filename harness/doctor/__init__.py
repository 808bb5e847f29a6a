"""Is this machine in the portable class? Golden digests of the operations that runs use."""
