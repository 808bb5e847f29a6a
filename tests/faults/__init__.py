"""Faults of machines and people with the real grader: kills, full disks, damaged files, clocks (`make faults`)."""
