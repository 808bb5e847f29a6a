"""What checks are made of: the experiment they measure, what they report, and the process they run in."""
