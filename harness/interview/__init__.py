"""The interview room: one script, four faults at once, a clock, tests of one's own, and a task at the end."""
