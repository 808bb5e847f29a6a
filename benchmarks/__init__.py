"""What the harness costs, measured against plain scripts; none of it is needed to use the harness."""
