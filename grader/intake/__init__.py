"""Read submissions: hostile until proven otherwise, parsed in memory, never unpacked, never run."""
