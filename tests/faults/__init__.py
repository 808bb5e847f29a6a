"""Faults of machines and people, done to the real grader: kills, full disks, damaged files, clocks (`make faults`)."""
